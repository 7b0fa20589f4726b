"""Quality of service classes."""

import pytest

from drachma.accounting import qos
from drachma.values import quantity


def _amounts(**texts: str) -> dict[str, quantity.Quantity]:
    return {name: quantity.Quantity.parse(text) for name, text in texts.items()}


_FULL = _amounts(cpu="1", memory="1Gi")


@pytest.mark.parametrize(
    ("stated", "want"),
    [
        pytest.param([], qos.BEST_EFFORT, id="no-containers"),
        pytest.param([({}, {})], qos.BEST_EFFORT, id="nothing"),
        pytest.param([(_amounts(cpu="0"), {})], qos.BEST_EFFORT, id="zero"),
        pytest.param([(_amounts(**{"example.com/gpu": "1"}), {})], qos.BEST_EFFORT, id="other-resources"),
        pytest.param([(_FULL, _FULL)], qos.GUARANTEED, id="all-limited-to-what-is-requested"),
        pytest.param([(_FULL, _amounts(cpu="1000m", memory="1Gi"))], qos.GUARANTEED, id="spelled-differently"),
        pytest.param([(_FULL, _FULL), ({}, {})], qos.BURSTABLE, id="one-container-says-nothing"),
        pytest.param([(_FULL, _amounts(cpu="2", memory="1Gi"))], qos.BURSTABLE, id="more-than-requested"),
        pytest.param([(_amounts(cpu="1"), _amounts(cpu="1"))], qos.BURSTABLE, id="no-memory"),
        pytest.param([({}, _FULL)], qos.BURSTABLE, id="limits-only"),
    ],
)
def test_classify(stated: list[tuple[qos.Amounts, qos.Amounts]], want: str) -> None:
    assert qos.classify(stated) == want
