"""Rules for workloads that are made and changed."""

import pytest

from drachma.queueing.kinds import decoding, workload
from drachma.queueing.rules import workloadrules


def _gated(by: str) -> workload.Workload:
    annotations = {workload.ADMISSION_GATES: by} if by else {}
    document = {"metadata": {"name": "w", "namespace": "ns", "annotations": annotations}, "spec": {"podSets": []}}
    return decoding.decode(document, workload.Workload)


@pytest.mark.parametrize(
    ("old", "want"),
    [
        pytest.param(None, ["cannot contain empty gate names"], id="made"),
        pytest.param(_gated(","), ["cannot contain empty gate names"], id="unchanged"),
        pytest.param(
            _gated(""), ["cannot contain empty gate names", "cannot add admission gate after creation"], id="added"
        ),
    ],
)
def test_what_several_rules_find_is_said_once(old: workload.Workload | None, want: list[str]) -> None:
    assert [each.detail for each in workloadrules.check(_gated(","), old)] == want


def test_usage_that_cannot_be_divided_among_pods_names_their_number() -> None:
    assignment = {"name": "main", "count": 3, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": "2500m"}}
    pods = {"name": "main", "count": 3, "template": {"spec": {"containers": []}}}
    condition = {"type": "QuotaReserved", "status": "True", "reason": "r", "message": "", "lastTransitionTime": None}
    document = {
        "metadata": {"name": "w", "namespace": "ns"},
        "spec": {"podSets": [pods]},
        "status": {
            "conditions": [condition],
            "admission": {"clusterQueue": "q", "podSetAssignments": [assignment]},
        },
    }
    wl = decoding.decode(document, workload.Workload)
    assert "is not a multiple of 3" in [each.detail for each in workloadrules.check(wl, None)]
