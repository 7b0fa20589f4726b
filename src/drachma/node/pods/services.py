"""Services of a node that the workers of its pods use. The agent of the node composes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from drachma.api.pod import Container, Pod
from drachma.node.pods import resizing
from drachma.node.pods.admission import Verdict
from drachma.node.pods.containerstate import Records, ResourceStatuses
from drachma.node.probes.watching import Probes
from drachma.node.runtimes import protocol
from drachma.runtime.clock import Clock


class PodAPI(Protocol):
    """Pods and their events at the API server; see :class:`drachma.node.pods.podclient.PodClient`."""

    async def write_status(self, pod: Pod, content: dict[str, Any]) -> Pod:
        """Write the node's part of a pod's status, and return the pod that the API server stored."""

    async def delete(self, pod: Pod) -> None:
        """Delete a pod without a grace period."""

    async def recall(self, pod: Pod) -> Records:
        """Return the records of the pod's containers in its stored status. Raises NodeError to be tried again."""

    async def resize_policies(self, pod: Pod) -> resizing.Policies:
        """Return the resize policies of the pod's containers. Raises NodeError to be tried again."""

    def record(self, pod: Pod, *, reason: str, message: str, is_warning: bool = False) -> None:
        """Record an event about a pod."""


class Claims(Protocol):
    """Claims of pods on the node; see :class:`drachma.node.claims.nodeclaims.NodeClaims`."""

    async def prepare(self, pod: Pod) -> None:
        """Prepare all claims of a pod. Raises NodeError to be tried again."""

    async def unprepare(self, pod: Pod) -> None:
        """Unprepare the claims of a pod. Raises NodeError to be tried again."""

    def cdi_devices(self, pod: Pod, container: Container) -> Sequence[str]:
        """Return the CDI ids of a container's devices."""

    def device_health(self, pod: Pod) -> ResourceStatuses:
        """Return the health of the devices of a pod."""


class Setups(Protocol):
    """Everything that containers are started with; see :class:`drachma.node.setup.podsetup.PodSetups`."""

    async def begin(self, pod: Pod) -> None:
        """Make the volumes of a pod. Raises NodeError to be tried again."""

    async def setup(self, pod: Pod, container: Container) -> protocol.Setup:
        """Return the setup of a container. Raises StartError to be tried again."""

    def end_setup(self, pod: Pod, container: Container) -> None:
        """Undo what is needed for the start of a container alone, once it has started or failed to start."""

    def probes(self, pod: Pod, container: Container) -> Probes | None:
        """Return the probes of a container, or None if it has none."""

    async def run_start_hook(self, pod: Pod, container: str, run: protocol.Container) -> str | None:
        """Run the hook after a container's start. Return the problem, or None."""

    async def run_stop_hook(self, pod: Pod, container: str, run: protocol.Container, *, seconds: float) -> str | None:
        """Run the hook before a container's stop. Return the problem, or None."""

    async def termination_message(
        self, pod: Pod, container: str, run: protocol.Container, *, exit_: protocol.Exit
    ) -> str:
        """Return the termination message of a container that has ended."""

    def forget(self, pod: Pod) -> None:
        """Remove the files of a pod that is gone."""


class Resources(Protocol):
    """Room for pods on the node; see :class:`drachma.node.pods.noderesources.NodeResources`."""

    def admit(self, pod: Pod) -> Verdict:
        """Decide whether the node has room for a pod."""

    def check_resize(self, pod: Pod) -> resizing.Waiting | None:
        """Return why a pod cannot have its new resources now, or None if it can."""

    def container_resources(self, pod: Pod, container: Container) -> dict[str, Any]:
        """Return the resources of a running container, as its status shows them."""

    def bounds(self, pod: Pod, container: Container) -> protocol.Bounds | None:
        """Return the bounds of a container, or None if nothing bounds it."""

    def quality_notice(self, pod: Pod) -> str:
        """Return a message if claims change the pod's quality of service; empty otherwise."""


class Addresses(Protocol):
    """Addresses of pods; see :class:`drachma.node.pods.podaddresses.PodAddresses`."""

    def status(self, pod: Pod) -> Mapping[str, Any]:
        """Return the addresses of the node and a pod, as fields of the pod's status."""

    def release(self, uid: str) -> None:
        """Free the address of a pod that is gone."""


class StartMetrics(Protocol):
    """Counts of started containers; see :class:`drachma.node.agentmetrics.NodeMetrics`."""

    def count_start(self, container_type: str) -> None:
        """Count an attempt to start a container."""

    def count_start_error(self, container_type: str, code: str) -> None:
        """Count a container that could not be started."""


class PodServices(NamedTuple):
    """All services of one node."""

    clock: Clock
    runtime: protocol.Runtime
    api: PodAPI
    claims: Claims
    setups: Setups
    resources: Resources
    addresses: Addresses
    metrics: StartMetrics

    def clean_up(self, pod: Pod) -> None:
        """Remove what is left of a pod that is gone."""
        self.runtime.forget(pod.metadata.uid)
        self.addresses.release(pod.metadata.uid)
        self.setups.forget(pod)


class NoSetups:
    """Setups of containers that see no files: their own command and arguments, and nothing else."""

    async def begin(self, pod: Pod) -> None:
        pass

    async def setup(self, pod: Pod, container: Container) -> protocol.Setup:
        return protocol.Setup(command=container.command, args=container.args)

    def end_setup(self, pod: Pod, container: Container) -> None:
        pass

    def probes(self, pod: Pod, container: Container) -> Probes | None:
        return None

    async def run_start_hook(self, pod: Pod, container: str, run: protocol.Container) -> str | None:
        return None

    async def run_stop_hook(self, pod: Pod, container: str, run: protocol.Container, *, seconds: float) -> str | None:
        return None

    async def termination_message(
        self, pod: Pod, container: str, run: protocol.Container, *, exit_: protocol.Exit
    ) -> str:
        return ""

    def forget(self, pod: Pod) -> None:
        pass
