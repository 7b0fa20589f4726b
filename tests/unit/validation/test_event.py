"""Events."""

from typing import Any

import pytest

from drachma.validation import event
from drachma.validation.path import ROOT


@pytest.mark.parametrize(
    ("content", "want"),
    [
        pytest.param(
            {
                "involvedObject": {"kind": "Pod", "namespace": "other", "name": "p"},
                "reason": "R",
                "message": "m",
                "type": "Normal",
            },
            ['involvedObject.namespace: Invalid value: "other": does not match event.namespace'],
            id="involved-object-namespace-invalid-value",
        ),
    ],
)
def test_refused(content: dict[str, Any], want: list[str]) -> None:
    found = [str(error) for error in event.KINDS["Event"].always(content, ROOT, {"namespace": "default"})]
    assert found == want
