"""One look at a group of pods: what becomes of them."""

from datetime import UTC, datetime
from typing import Any

from drachma.queueing import podgroup, podreconcile
from drachma.queueing.jobsettings import JobSettings, Surroundings
from drachma.queueing.jobworkload import Priorities

_NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _ungated(name: str) -> dict[str, Any]:
    """A pod of a group of one that nobody has admitted, and that is not held back."""
    labels = {
        podgroup.FINALIZER: "true",
        "kueue.x-k8s.io/pod-group-name": "group",
        "kueue.x-k8s.io/queue-name": "team",
    }
    annotations = {podgroup.TOTAL: "1", "kueue.x-k8s.io/pod-group-fast-admission": "true"}
    metadata = {"name": name, "namespace": "ns", "uid": name, "labels": labels, "annotations": annotations}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "finalizers": [podgroup.FINALIZER]},
        "spec": {"containers": [{"name": "c"}]},
    }


def test_pods_that_are_stopped_are_not_deleted_again_as_too_many() -> None:
    around = Surroundings(
        namespace_labels={},
        workloads=[],
        owners={},
        flavors={},
        priorities=Priorities(of_workloads={}, of_pods={}, defaults=[]),
    )

    outcome = podreconcile.reconcile_group(
        "ns", "group", [_ungated("a"), _ungated("b")], around, _NOW, settings=JobSettings()
    )

    assert sorted((each.key, each.reason) for each in outcome.events) == [
        ("ns/a", "CreatedWorkload"),
        ("ns/a", "Stopped"),
        ("ns/b", "Stopped"),
    ]
    assert list(outcome.pods) == ["a"]
