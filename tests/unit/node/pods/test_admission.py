"""Admission of bound pods by their node."""

import pytest

from drachma.node.pods import admission
from drachma.testing import node, pod


@pytest.mark.parametrize(
    ("phase", "want_reason"),
    [
        pytest.param("Running", "OutOfpods", id="a-pod-that-runs-takes-room"),
        pytest.param("Pending", "OutOfpods", id="a-pod-that-is-about-to-takes-room"),
        pytest.param("Succeeded", "", id="a-pod-that-is-over-takes-none"),
        pytest.param("Failed", "", id="a-pod-that-failed-takes-none"),
    ],
)
def test_room_is_what_pods_that_have_not_ended_leave(phase: str, want_reason: str) -> None:
    where = node("n", allocatable={"cpu": "4", "memory": "1Gi", "pods": "1"}).build()
    verdict = admission.admit(pod("new").build(), where, [pod("old").phase(phase).build()], with_claims=False)
    assert (verdict.is_admitted, verdict.reason) == (not want_reason, want_reason)
