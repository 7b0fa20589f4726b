"""Parents of pods: templates whose pods are gated, workloads of groups, and pods as members of their group."""

from typing import Any

import pytest

from drachma.queueing.configuration.gates import DEFAULT
from drachma.queueing.integrations import pods
from drachma.queueing.integrations.parents import Deployment, GroupParent, LeaderWorkerSet, StatefulSet, is_outdated

_LABELS = {"kueue.x-k8s.io/queue-name": "team", "kueue.x-k8s.io/priority-class": "high"}


def _metadata(**more: Any) -> dict[str, Any]:
    return {"name": "web", "namespace": "default", "uid": "u", "labels": dict(_LABELS), **more}


def _leader_worker_set(*, size: int = 3, replicas: int = 2, has_leader: bool = True, **more: Any) -> LeaderWorkerSet:
    template: dict[str, Any] = {"size": size, "workerTemplate": {"spec": {"containers": []}}}
    if has_leader:
        template["leaderTemplate"] = {"spec": {"containers": []}}
    spec = {"replicas": replicas, "leaderWorkerTemplate": template, **more.pop("spec", {})}
    return LeaderWorkerSet({"metadata": _metadata(), "spec": spec, **more})


def test_pods_of_a_deployment_carry_its_queue() -> None:
    after = Deployment({"metadata": _metadata(), "spec": {"template": {"spec": {}}}}).completed(DEFAULT)
    metadata = after["spec"]["template"]["metadata"]
    assert metadata == {
        "labels": {"kueue.x-k8s.io/managed": "true", **_LABELS},
        "annotations": {"kueue.x-k8s.io/pod-suspending-parent": "deployment"},
    }


def test_a_stateful_set_of_a_leader_worker_set_is_left_to_it() -> None:
    template = {"metadata": {"annotations": {pods.PARENT: "leaderworkerset.x-k8s.io/leaderworkerset"}}, "spec": {}}
    assert StatefulSet({"metadata": _metadata(), "spec": {"template": template}}).is_of_another_parent


def test_only_stateful_sets_are_made_for_other_parents() -> None:
    template = {"metadata": {"annotations": {pods.PARENT: "example.com/other"}}, "spec": {}}
    assert not Deployment({"metadata": _metadata(), "spec": {"template": template}}).is_of_another_parent
    groups = {"leaderWorkerTemplate": {"workerTemplate": template}}
    assert not LeaderWorkerSet({"metadata": _metadata(), "spec": groups}).is_of_another_parent


@pytest.mark.parametrize("model", [StatefulSet, LeaderWorkerSet])
def test_workloads_of_a_dispatched_parent_are_named_by_the_original(model: type[GroupParent]) -> None:
    spec: dict[str, Any] = {"template": {"spec": {}}}
    original = model({"metadata": _metadata(), "spec": spec})
    labels = {**_LABELS, "kueue.x-k8s.io/multikueue-origin": "manager"}
    annotations = {"kueue.x-k8s.io/multikueue-origin-uid": "u"}
    copy = model({"metadata": _metadata(uid="other", labels=labels, annotations=annotations), "spec": spec})
    assert copy.is_copy
    assert copy.workload_keys(DEFAULT) == original.workload_keys(DEFAULT)
    unrelated = model({"metadata": _metadata(uid="other", annotations=annotations), "spec": spec})
    assert not unrelated.is_copy
    assert unrelated.workload_keys(DEFAULT) != original.workload_keys(DEFAULT)


def test_a_pod_joins_the_group_of_its_stateful_set() -> None:
    parent = StatefulSet({"metadata": _metadata(), "spec": {"replicas": 3, "template": {"spec": {}}}})
    joined = parent.completed_pod({"metadata": {"name": "web-0"}, "spec": {}}, DEFAULT)
    group = parent.workload_name(DEFAULT)
    annotations = joined["metadata"]["annotations"]
    assert joined["metadata"]["labels"] == {"kueue.x-k8s.io/managed": "true", **_LABELS}
    assert annotations["kueue.x-k8s.io/pod-group-name"] == annotations["kueue.x-k8s.io/prebuilt-workload-name"] == group
    assert annotations["kueue.x-k8s.io/pod-group-total-count"] == "3"
    assert annotations["kueue.x-k8s.io/role-hash"] == "main"
    assert parent.completed_pod(joined, DEFAULT) == joined


def test_leader_and_workers_are_two_pod_sets() -> None:
    sizes = [(each["name"], each["count"]) for each in _leader_worker_set().pod_sets(DEFAULT)]
    assert sizes == [("leader", 1), ("worker", 2)]
    alone = _leader_worker_set(has_leader=False)
    assert [(each["name"], each["count"]) for each in alone.pod_sets(DEFAULT)] == [("main", 3)]


def test_workers_are_numbered_after_their_leader() -> None:
    template = _leader_worker_set().completed(DEFAULT)["spec"]["leaderWorkerTemplate"]
    assert "kueue.x-k8s.io/pod-index-offset" not in template["leaderTemplate"]["metadata"]["annotations"]
    assert template["workerTemplate"]["metadata"]["annotations"]["kueue.x-k8s.io/pod-index-offset"] == "1"


@pytest.mark.parametrize(
    ("annotations", "want"),
    [
        pytest.param({}, "leader", id="leader"),
        pytest.param({"leaderworkerset.sigs.k8s.io/leader-name": "web-0"}, "worker", id="worker"),
    ],
)
def test_a_pod_has_the_role_of_its_template(annotations: dict[str, str], want: str) -> None:
    metadata = {"name": "web-0", "labels": {"leaderworkerset.sigs.k8s.io/group-index": "0"}, "annotations": annotations}
    gated = {"metadata": metadata, "spec": {"schedulingGates": [{"name": pods.GATE}]}}
    joined = _leader_worker_set().completed_pod(gated, DEFAULT)
    assert joined["metadata"]["annotations"]["kueue.x-k8s.io/role-hash"] == want
    assert joined["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team"


def test_a_pod_without_its_index_waits() -> None:
    early = {"metadata": {"name": "web-0", "labels": {}}, "spec": {}}
    assert _leader_worker_set().completed_pod(early, DEFAULT) is early


def test_new_replicas_of_a_rolling_update_have_workloads() -> None:
    rolling = {"rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": 1}}}
    surging = _leader_worker_set(spec=rolling, status={"replicas": 3, "updatedReplicas": 1})
    assert [each.replica for each in surging.workload_keys(DEFAULT)] == [0, 1, 2]
    shrinking = _leader_worker_set(status={"replicas": 3, "updatedReplicas": 1})
    assert [each.replica for each in shrinking.workload_keys(DEFAULT)] == [0, 1]


def test_pods_of_an_old_revision_are_outdated() -> None:
    status = {"status": {"currentRevision": "a", "updateRevision": "b"}}

    def pod(revision: str) -> dict[str, Any]:
        return {"metadata": {"name": "web-0", "labels": {"controller-revision-hash": revision}}}

    assert is_outdated(pod("a"), status)
    assert not is_outdated(pod("b"), status)
    assert not is_outdated(pod("a"), {"status": {"currentRevision": "a", "updateRevision": "a"}})
