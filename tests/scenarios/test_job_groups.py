"""Jobs with a Workload and a PodGroup of their own (WorkloadWithJob)."""

from drachma.api import gates, pod, podgroup
from tests.scenarios import controlplane

GATES = gates.ALL.switched({"GenericWorkload": True, "WorkloadWithJob": True})
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: training}
spec:
  parallelism: 3
  completions: 3
  completionMode: Indexed
  scheduling: {schedulingPolicy: {gang: {}}}
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: pause, resources: {requests: {cpu: "1"}}}]
"""
NODE = """
apiVersion: v1
kind: Node
metadata: {name: %s}
status:
  allocatable: {cpu: "%s", memory: 8Gi, pods: "10"}
  conditions: [{type: Ready, status: "True"}]
"""


async def test_the_pods_of_a_job_are_a_gang() -> None:
    async with controlplane.control_plane(gates=GATES) as plane:
        await plane.apply(NODE % ("n1", "2"), JOB)
        await plane.advance(3)
        (group,) = await plane.all_of(podgroup.PodGroup)
        assert group.spec.scheduling_policy.gang is not None
        assert group.spec.scheduling_policy.gang.min_count == 3
        assert group.spec.workload_ref is not None
        assert group.metadata.name.startswith("training-")
        assert group.spec.workload_ref.workload_name == group.metadata.name
        assert group.spec.workload_ref.template_name == "pods"
        pods = await plane.all_of(pod.Pod)
        assert [each.spec.node_name for each in pods] == ["", "", ""]
        assert {each.spec.scheduling_group.pod_group_name for each in pods if each.spec.scheduling_group} == {
            group.metadata.name
        }

        await plane.apply(NODE % ("n2", "2"))
        await plane.advance(10)
        assert all(each.spec.node_name for each in await plane.all_of(pod.Pod))


async def test_a_job_without_the_gate_has_no_group() -> None:
    enabled = GATES.switched({"WorkloadWithJob": False})
    async with controlplane.control_plane(gates=enabled) as plane:
        await plane.apply(NODE % ("n1", "2"), JOB)
        await plane.advance(3)
        assert await plane.all_of(podgroup.PodGroup) == ()
        assert sum(bool(each.spec.node_name) for each in await plane.all_of(pod.Pod)) == 2
