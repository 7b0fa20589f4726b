"""Resources of one node: admission of pods, and the bounds of their containers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from drachma.api import gates as feature
from drachma.api import node
from drachma.api.pod import Container, Pod
from drachma.claims import podfeatures
from drachma.node.pods import admission, podquality, podresources, resizing
from drachma.node.runtimes import protocol


def declared_features(gates: feature.Gates) -> list[str]:
    """Return the features of a node that concern resources: resizes of whole pods, and those of gates."""
    features = [podfeatures.POD_LEVEL_RESIZE]
    if gates.on(feature.Gate.NODE_ALLOCATABLE_RESOURCES):
        features.append(feature.Gate.NODE_ALLOCATABLE_RESOURCES.value)
        if gates.on(feature.Gate.NODE_ALLOCATABLE_QOS):
            features.append(feature.Gate.NODE_ALLOCATABLE_QOS.value)
    return features


class NodeResources:
    """Decides what the pods of a node get of it."""

    def __init__(
        self,
        described: node.Node,
        *,
        gates: feature.Gates,
        running_pods: Callable[[], Iterable[Pod]],
        has_bounds: bool = True,
    ) -> None:
        """``described`` is the Node that the agent registers, until :meth:`update` gives the stored one.

        Without ``has_bounds``, containers are only simulated, and need none.
        """
        self._has_bounds: Final = has_bounds
        self._node = described
        self._running_pods: Final = running_pods
        self._gates: Final = gates
        self._counts_claims: Final = gates.on(feature.Gate.NODE_ALLOCATABLE_RESOURCES)
        self._counts_claims_in_quality: Final = self._counts_claims and gates.on(feature.Gate.NODE_ALLOCATABLE_QOS)

    @property
    def declared_features(self) -> list[str]:
        """Features of the node that concern resources."""
        return declared_features(self._gates)

    def update(self, stored_node: node.Node) -> None:
        """Take over the capacity of the registered Node."""
        self._node = stored_node

    def admit(self, pod: Pod) -> admission.Verdict:
        """Decide whether the node has room for a pod in addition to its running pods."""
        neighbours = [each for each in self._running_pods() if each.metadata.uid != pod.metadata.uid]
        return admission.admit(pod, self._node, neighbours, with_claims=self._counts_claims)

    def check_resize(self, pod: Pod) -> resizing.Waiting | None:
        """Return why a pod cannot have its new resources now, or None if it can."""
        alone = admission.admit(pod, self._node, (), with_claims=self._counts_claims)
        if not alone.is_admitted:
            message = alone.message.replace("enough resource:", "enough capacity:").replace(" used: 0,", "")
            return resizing.Waiting(resizing.INFEASIBLE, message)
        verdict = self.admit(pod)
        return None if verdict.is_admitted else resizing.Waiting(resizing.DEFERRED, verdict.message)

    def container_resources(self, pod: Pod, container: Container) -> dict[str, Any]:
        """Return the resources of a running container, as its status shows them."""
        return resizing.container_resources(pod, container, with_claims=self._counts_claims)

    def bounds(self, pod: Pod, container: Container) -> protocol.Bounds | None:
        """Return the bounds of a container, or None if nothing bounds it."""
        quality = self._quality(pod) if self._has_bounds else None
        if quality is None or container.name not in quality.containers:
            # Ephemeral containers are not held to the requests of their pod.
            return None
        return protocol.Bounds(
            quality=quality.name,
            pod=quality.cgroup,
            container=quality.containers[container.name],
            oom_score=quality.oom_scores[container.name],
        )

    def quality_notice(self, pod: Pod) -> str:
        """Return a message if claims change the pod's quality of service; empty otherwise.

        The pod's status keeps the class that the spec alone gives.
        """
        if not self._counts_claims_in_quality:
            return ""
        quality = self._quality(pod)
        if quality is None or quality.name == podresources.quality(pod):
            return ""
        scores = ", ".join(f"{each.name} {quality.oom_scores[each.name]}" for each in pod.spec.containers)
        shares = quality.cgroup.cpu_shares
        return f"Quality of service with claims is {quality.name}: cpu shares {shares}, OOM scores: {scores}"

    def _quality(self, pod: Pod) -> podquality.PodQuality | None:
        """Return the quality of a pod, or None on a node that does not say how much memory it has."""
        capacity = self._node.status.capacity
        memory = capacity["memory"].as_int64() if "memory" in capacity else 0
        if not memory:
            return None
        return podquality.pod_quality(
            pod,
            memory=memory,
            with_claims=self._counts_claims,
            in_quality=self._counts_claims_in_quality,
        )
