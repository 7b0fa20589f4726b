"""Builders for workloads and for objects around them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from msgspec import structs

from drachma.api import event as events
from drachma.api import job as jobs
from drachma.api import lease as leases
from drachma.api import meta
from drachma.api import namespace as namespaces
from drachma.api import node as nodes
from drachma.api import pod as pods
from drachma.api import resourcequota as quotas
from drachma.api.struct import ABSENT_MAP, ABSENT_TEXT, ABSENT_TUPLE
from drachma.driver import devices as device_builders
from drachma.testing import builder


class PodBuilder(builder.Builder[pods.Pod]):
    """Builds a Pod."""

    __slots__ = ()

    def container(
        self, name: str, *, requests: Mapping[str, device_builders.Amount] | None = None, claims: tuple[str, ...] = ()
    ) -> Self:
        """Add a container. A claim is ``name`` or ``name/request``."""
        return self._replace_spec(containers=(*self._object.spec.containers, _container(name, requests, claims)))

    def init_container(
        self,
        name: str,
        *,
        requests: Mapping[str, device_builders.Amount] | None = None,
        claims: tuple[str, ...] = (),
        restart_policy: str | None = None,
    ) -> Self:
        """Add an init container. Restart policy Always makes it a sidecar."""
        added = structs.replace(_container(name, requests, claims), restart_policy=restart_policy)
        return self._replace_spec(init_containers=(*self._object.spec.init_containers, added))

    def claim(self, name: str, *, claim: str | None = None, template: str | None = None) -> Self:
        """Add an existing claim, or a template for one."""
        entry = pods.PodResourceClaim(name=name, resource_claim_name=claim, resource_claim_template_name=template)
        return self._replace_spec(resource_claims=(*self._object.spec.resource_claims, entry))

    def on_node(self, name: str) -> Self:
        """Bind the pod to a node."""
        return self._replace_spec(node_name=name)

    def phase(self, phase: str) -> Self:
        """Set the phase."""
        return self._with(status=structs.replace(self._object.status, phase=phase))

    def spec(self, **fields: object) -> Self:
        """Set any other fields of the pod's spec."""
        return self._replace_spec(**fields)

    def _replace_spec(self, **changes: object) -> Self:
        return self._with(spec=structs.replace(self._object.spec, **changes))


def _container(
    name: str, requests: Mapping[str, device_builders.Amount] | None, claims: tuple[str, ...]
) -> pods.Container:
    references = tuple(
        pods.ContainerClaim(name=claim, request=request or ABSENT_TEXT)
        for claim, _, request in (text.partition("/") for text in claims)
    )
    resources = pods.ResourceRequirements(
        requests={key: device_builders.amount(value) for key, value in requests.items()} if requests else ABSENT_MAP,
        claims=references or ABSENT_TUPLE,
    )
    return pods.Container(name=name, resources=resources)


def pod(name: str, *, namespace: str = "default") -> PodBuilder:
    """Return a builder for a pod without containers."""
    return PodBuilder(pods.Pod(metadata=meta.ObjectMeta(name=name, namespace=namespace)))


def job(name: str, template: PodBuilder, *, completions: int = 1, parallelism: int = 1) -> builder.Builder[jobs.Job]:
    """Return a builder for a job with pods like ``template``."""
    built = template.build()
    spec = jobs.JobSpec(
        completions=completions,
        parallelism=parallelism,
        template=jobs.PodTemplateSpec(metadata=meta.ObjectMeta(labels=built.metadata.labels), spec=built.spec),
    )
    metadata = meta.ObjectMeta(name=name, namespace=built.metadata.namespace)
    return builder.Builder(jobs.Job(metadata=metadata, spec=spec))


def node(
    name: str,
    *,
    labels: Mapping[str, str] = ABSENT_MAP,
    allocatable: Mapping[str, device_builders.Amount] | None = None,
    taints: tuple[nodes.Taint, ...] = ABSENT_TUPLE,
) -> builder.Builder[nodes.Node]:
    """Return a builder for a ready node, by default with 4 CPUs, 16 GiB and 110 pods."""
    amounts = allocatable or {"cpu": "4", "memory": "16Gi", "pods": "110"}
    resources = {key: device_builders.amount(value) for key, value in amounts.items()}
    ready = nodes.NodeCondition(type="Ready", status="True")
    return builder.Builder(
        nodes.Node(
            metadata=meta.ObjectMeta(name=name, labels=labels),
            spec=nodes.NodeSpec(taints=taints),
            status=nodes.NodeStatus(capacity=resources, allocatable=resources, conditions=(ready,)),
        )
    )


def namespace(name: str, *, labels: Mapping[str, str] = ABSENT_MAP) -> builder.Builder[namespaces.Namespace]:
    """Return a builder for an active namespace."""
    status = namespaces.NamespaceStatus(phase="Active")
    return builder.Builder(namespaces.Namespace(metadata=meta.ObjectMeta(name=name, labels=labels), status=status))


def resource_quota(
    name: str, *, hard: Mapping[str, device_builders.Amount], namespace: str = "default"
) -> builder.Builder[quotas.ResourceQuota]:
    """Return a builder for a quota with these limits."""
    limits = {key: device_builders.amount(value) for key, value in hard.items()}
    metadata = meta.ObjectMeta(name=name, namespace=namespace)
    return builder.Builder(quotas.ResourceQuota(metadata=metadata, spec=quotas.ResourceQuotaSpec(hard=limits)))


def event(
    name: str, *, reason: str, message: str, subject: events.ObjectReference, type_: str = "Normal"
) -> builder.Builder[events.Event]:
    """Return a builder for an event about an object, in its namespace."""
    metadata = meta.ObjectMeta(name=name, namespace=subject.namespace)
    return builder.Builder(
        events.Event(metadata=metadata, involved_object=subject, reason=reason, message=message, type=type_)
    )


def lease(
    name: str, *, holder: str, namespace: str = "kube-node-lease", renew_time: str | None = None
) -> builder.Builder[leases.Lease]:
    """Return a builder for a lease of 40 seconds."""
    spec = leases.LeaseSpec(holder_identity=holder, lease_duration_seconds=40, renew_time=renew_time)
    return builder.Builder(leases.Lease(metadata=meta.ObjectMeta(name=name, namespace=namespace), spec=spec))
