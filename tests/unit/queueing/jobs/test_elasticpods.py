"""Which pods of an elastic job are let go."""

import pytest

from drachma.api import meta, pod
from drachma.queueing.jobs import elasticpods
from drachma.queueing.kinds import workload
from drachma.queueing.workloads import podsetinfo


def _pod(name: str, *, gated: bool, phase: str = "Pending", pod_set: str = "main") -> pod.Pod:
    gates = (pod.PodSchedulingGate(name=elasticpods.GATE),) if gated else ()
    return pod.Pod(
        metadata=meta.ObjectMeta(name=name, labels={podsetinfo.POD_SET_LABEL: pod_set}),
        spec=pod.PodSpec(scheduling_gates=gates),
        status=pod.PodStatus(phase=phase),
    )


def _workload(**counts: int) -> workload.Workload:
    sets = tuple(workload.PodSet(name=name, count=count) for name, count in counts.items())
    return workload.Workload(spec=workload.WorkloadSpec(pod_sets=sets))


@pytest.mark.parametrize(
    ("pods", "want"),
    [
        pytest.param([_pod("b", gated=True), _pod("a", gated=True)], ["a", "b"], id="all-of-them-by-name"),
        pytest.param(
            [_pod("c", gated=True), _pod("b", gated=True), _pod("a", gated=True)], ["a", "b"], id="no-more-than-quota"
        ),
        pytest.param([_pod("a", gated=False), _pod("b", gated=True), _pod("c", gated=True)], ["b"], id="beside-others"),
        pytest.param(
            [_pod("a", gated=False, phase="Succeeded"), _pod("b", gated=True), _pod("c", gated=True)],
            ["b", "c"],
            id="those-that-ended-need-none",
        ),
        pytest.param([_pod("a", gated=False), _pod("b", gated=False), _pod("c", gated=True)], [], id="none-is-left"),
        pytest.param([_pod("a", gated=True, pod_set="workers")], [], id="of-a-set-without-quota"),
    ],
)
def test_pods_are_let_go_as_far_as_there_is_quota(pods: list[pod.Pod], want: list[str]) -> None:
    assert [each.metadata.name for each in elasticpods.let_go(_workload(main=2), pods)] == want


def test_a_template_is_gated_once() -> None:
    template = {"spec": {"schedulingGates": [{"name": "own"}], "containers": []}}
    once = elasticpods.gated(template)

    assert once["spec"]["schedulingGates"] == [{"name": "own"}, {"name": "kueue.x-k8s.io/elastic-job"}]
    assert elasticpods.gated(once) == once
