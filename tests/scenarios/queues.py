"""A control plane with queueing, and what tests of it create and look at."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from msgspec import structs

from drachma.api import gates as features
from drachma.api import job, meta, pod
from drachma.client import Client, patches
from drachma.node.simulation import hardware
from drachma.process import nodeagents, queueing
from drachma.queueing import conditions
from drachma.queueing.component import ActiveConfiguration, Connect, PendingView, resources
from drachma.queueing.configuration import queueingpolicy
from drachma.queueing.kinds import workload
from drachma.testing import manualclock
from tests.scenarios import controlplane

GPU_CLASS = "gpu.simulation.drachma.dev"
MAPPED = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta2",
    "kind": "Configuration",
    "resources": {"deviceClassMappings": [{"name": "gpus", "deviceClassNames": [GPU_CLASS]}]},
}
FLAVOR = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: default}
"""
TEMPLATE = f"""
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: one-gpu}}
spec: {{spec: {{devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: {GPU_CLASS}}}}}]}}}}}}
"""


class Queues(controlplane.ControlPlane):
    """A control plane on which queueing runs."""

    def __init__(
        self,
        client: Client,
        components: Client,
        *,
        configured: ActiveConfiguration,
        view: PendingView,
        connect: Connect | None = None,
        **options: Any,
    ) -> None:
        super().__init__(client, components, **options)
        self.configured = configured
        self.view = view
        self._connect = connect

    async def create_queue(
        self, name: str = "team", *, flavor: str = "default", cohort: str = "", **quota: int
    ) -> None:
        """A cluster queue with quota by resource, and a local queue of the same name in ``default``."""
        amounts = [{"name": each, "nominalQuota": str(amount)} for each, amount in quota.items()]
        spec: dict[str, Any] = {
            "namespaceSelector": {},
            "resourceGroups": [
                {"coveredResources": list(quota), "flavors": [{"name": flavor, "resources": amounts}]},
            ],
            "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
            **({"cohortName": cohort} if cohort else {}),
        }
        await self.client.create_document(resources.CLUSTER_QUEUES, made("ClusterQueue", name, spec))
        local = made("LocalQueue", name, {"clusterQueue": name}, namespace="default")
        await self.client.create_document(resources.LOCAL_QUEUES, local)
        await self.settle()

    async def create_check(self, queue: str, name: str = "manual") -> None:
        """An admission check of a cluster queue, which its controller knows and has yet to decide about workloads."""
        document = made("AdmissionCheck", name, {"controllerName": "example.com/someone"})
        await self.client.create_document(resources.CHECKS, document)
        active = {"type": "Active", "status": "True", "reason": "Active", "message": "", "observedGeneration": 1}
        status = {"conditions": [{**active, "lastTransitionTime": meta.time_text(self.clock.utc())}]}
        await self.client.patch(resources.CHECKS, name, subresource="status", patch=patches.merge({"status": status}))
        strategy = {"admissionChecksStrategy": {"admissionChecks": [{"name": name}]}}
        await self.client.patch(resources.CLUSTER_QUEUES, queue, patch=patches.merge({"spec": strategy}))
        await self.settle()

    async def create_job(self, name: str, **about: Any) -> None:
        """A Job, as :func:`job_document` has it, and all that follows from it."""
        await self.put_job(name, **about)
        await self.settle()

    async def put_job(self, name: str, **about: Any) -> None:
        """The same, and on at once."""
        await self.client.create_document(job.Job, job_document(name, **about))

    async def let_pass(self, turns: int) -> None:
        """Lets others have so many turns, in the middle of whatever they do."""
        for _ in range(turns):
            await asyncio.sleep(0)

    def launch_queueing(self) -> None:
        """Run the component from now on."""
        self.launch_queueing_on(self._components)

    def launch_queueing_on(self, client: Client) -> None:
        """Like launch_queueing(), with a client of the component's own."""
        component = functools.partial(
            queueing.component, configured=self.configured, view=self.view, connect=self._connect
        )
        self.launch_on("queueing", component, client)

    async def is_suspended(self, name: str) -> bool:
        document = await self.client.get_document(job.Job, name, namespace="default")
        return bool(document["spec"].get("suspend"))

    async def workload_of(self, name: str) -> workload.Workload:
        """The one workload of a job."""
        (record,) = [
            each
            for each in await self.all_of(resources.WORKLOADS)
            if any(owner.name == name for owner in each.metadata.owner_references)
        ]
        return record

    async def workload_condition(self, name: str, kind: str) -> tuple[str, str, str]:
        """Status, reason and message of a condition of a job's workload."""
        found = conditions.find((await self.workload_of(name)).status.conditions, kind)
        assert found is not None, kind
        return found.status, found.reason, found.message

    async def phases(self) -> dict[str, int]:
        """How many pods there are, by phase."""
        counted: dict[str, int] = {}
        for each in await self.all_of(pod.Pod):
            counted[each.status.phase] = counted.get(each.status.phase, 0) + 1
        return counted

    async def status_of(self, queue: str) -> dict[str, Any]:
        """The status of a cluster queue."""
        await self.advance(1)
        document = await self.client.get_document(resources.CLUSTER_QUEUES, queue)
        status: dict[str, Any] = document.get("status") or {}
        return status


def made(
    kind: str, name: str, spec: Mapping[str, Any], *, namespace: str = "", api_version: str = "kueue.x-k8s.io/v1beta2"
) -> dict[str, Any]:
    """An object."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": dict(spec)}


def job_document(
    name: str,
    *,
    queue: str = "team",
    pods: int = 1,
    cpu: str = "1",
    template: str = "",
    claim: str = "",
    labels: Mapping[str, str] | None = None,
    seconds: int = 0,
    annotations: Mapping[str, str] | None = None,
    is_indexed: bool = False,
) -> dict[str, Any]:
    """A Job of a queue in ``default``; its pods run for so many seconds, or for one, and have these annotations."""
    container: dict[str, Any] = {"name": "c", "image": "train", "resources": {"requests": {"cpu": cpu}}}
    spec: dict[str, Any] = {"containers": [container], "restartPolicy": "Never"}
    if template or claim:
        container["resources"]["claims"] = [{"name": "g"}]
        source = {"resourceClaimTemplateName": template} if template else {"resourceClaimName": claim}
        spec["resourceClaims"] = [{"name": "g", **source}]
    marks = {**({"simulation.drachma.dev/run-seconds": str(seconds)} if seconds else {}), **(annotations or {})}
    job_spec = {
        "parallelism": pods,
        "completions": pods,
        **({"completionMode": "Indexed"} if is_indexed else {}),
        "template": {"metadata": {"annotations": marks}, "spec": spec},
    }
    document = made("Job", name, job_spec, namespace="default", api_version="batch/v1")
    document["metadata"]["labels"] = {**({"kueue.x-k8s.io/queue-name": queue} if queue else {}), **(labels or {})}
    return document


def policy_document(choices: Mapping[str, str]) -> dict[str, str]:
    """A QueueingPolicy."""
    return {"apiVersion": queueingpolicy.API_VERSION, "kind": queueingpolicy.KIND, **choices}


@contextlib.asynccontextmanager
async def queues(
    *,
    configuration: Mapping[str, Any] | None = None,
    policy: Mapping[str, Any] | None = None,
    nodes: int = 1,
    profile: str = "gpu-server",
    has_webhooks: bool = True,
    wrap: Callable[[Client], Client] = lambda client: client,
    clock: manualclock.ManualClock | None = None,
    connect: Connect | None = None,
    gates: features.Gates = features.ALL,
) -> AsyncIterator[Queues]:
    """A whole control plane with simulated machines and queueing, under a configuration, and a policy beside it.

    Without webhooks it is as on clusters that have Kueue's definitions alone. ``wrap`` makes the components' client.
    ``connect`` reaches other clusters.
    """
    configured = ActiveConfiguration()
    if configuration is not None:
        configured.offer(configuration, *([policy_document(policy)] if policy else []))
    view = PendingView()
    additions = queueing.additions(configured, view)
    if not has_webhooks:
        additions = structs.replace(additions, functions=())
    make = functools.partial(Queues, configured=configured, view=view, connect=connect)
    async with controlplane.plane_of(make, additions=additions, wrap=wrap, clock=clock, gates=gates) as plane:
        plane.launch(
            "agents", functools.partial(nodeagents.simulated_machines, machines=hardware.build(profile, nodes))
        )
        plane.launch_queueing()
        await plane.settle()
        await plane.apply(FLAVOR, TEMPLATE)
        yield plane
