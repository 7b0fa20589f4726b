"""The configuration in force, of one or two documents; what is refused leaves the one before."""

from typing import Any

import pytest

from drachma.queueing.component import ActiveConfiguration, configurationmap
from drachma.queueing.configurationform import RefusedConfigurationError
from drachma.queueing.queueingpolicy import AS_KUEUE, QueueingPolicy, Sidecars

_KUEUE = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
_POLICY = {"apiVersion": "config.drachma.dev/v1", "kind": "QueueingPolicy", "sidecars": "Charged"}
_SHARING: dict[str, Any] = {
    **_KUEUE,
    "admissionFairSharing": {"usageHalfLifeTime": "1h", "usageSamplingInterval": "5m"},
}


def test_a_policy_stands_beside_kueues_configuration() -> None:
    active = ActiveConfiguration()
    assert active.policy == AS_KUEUE
    assert active.offer(_KUEUE, _POLICY)
    assert active.policy == QueueingPolicy(sidecars=Sidecars.CHARGED)
    assert active.settings.policy == active.policy
    assert not active.offer(_POLICY, _KUEUE)
    assert active.offer(_KUEUE)
    assert active.policy == AS_KUEUE


@pytest.mark.parametrize(
    ("documents", "want"),
    [
        pytest.param([_POLICY], "at most one QueueingPolicy: there are 0 and 1", id="policy-alone"),
        pytest.param([_KUEUE, _POLICY, _POLICY], "there are 1 and 2", id="two-policies"),
        pytest.param(
            [_KUEUE, {**_POLICY, "sidecars": "Free"}],
            'QueueingPolicy.sidecars: Unsupported value: "Free": supported values: "Charged", "Ordinary"',
            id="wrong-value",
        ),
        pytest.param([{**_KUEUE, "kind": "Other"}, _POLICY], "expected Configuration of", id="no-configuration"),
        pytest.param([_SHARING], "admissionFairSharing: admission by past usage is not carried out", id="past-usage"),
    ],
)
def test_what_is_wrong_with_either_refuses_both(documents: list[dict[str, Any]], want: str) -> None:
    active = ActiveConfiguration()
    active.offer(_KUEUE, _POLICY)
    with pytest.raises(RefusedConfigurationError) as caught:
        active.offer(*documents)
    assert want in str(caught.value)
    assert active.policy == QueueingPolicy(sidecars=Sidecars.CHARGED)


def test_what_a_gate_switches_off_may_be_said() -> None:
    without_interval = {**_SHARING, "admissionFairSharing": {"usageHalfLifeTime": "1h"}}
    assert ActiveConfiguration().offer({**without_interval, "featureGates": {"AdmissionFairSharing": False}})
    assert ActiveConfiguration().offer({**_SHARING, "featureGates": {"AdmissionFairSharing": False}})


def test_a_file_has_both_documents() -> None:
    text = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n---\nkind: QueueingPolicy\n"
    assert [each["kind"] for each in configurationmap.parse(text)] == ["Configuration", "QueueingPolicy"]
    with pytest.raises(RefusedConfigurationError, match="expected an object with apiVersion and kind, there is 'text'"):
        configurationmap.parse("text")
