"""Builders for Pod and Job."""

from collections.abc import Mapping
from typing import Self

from msgspec import structs

from drachma.api import job as jobs
from drachma.api import meta
from drachma.api import pod as pods
from drachma.api.struct import ABSENT_MAP, ABSENT_TEXT, ABSENT_TUPLE
from drachma.driver import devices as device_builders
from drachma.testing import builder


class PodBuilder(builder.Builder[pods.Pod]):
    """Builds a Pod."""

    __slots__ = ()

    def container(
        self, name: str, *, requests: Mapping[str, device_builders.Amount] | None = None, claims: tuple[str, ...] = ()
    ) -> Self:
        """With one more container; a claim is ``name`` or ``name/request``."""
        return self._with_spec(containers=(*self._object.spec.containers, _container(name, requests, claims)))

    def init_container(
        self,
        name: str,
        *,
        requests: Mapping[str, device_builders.Amount] | None = None,
        claims: tuple[str, ...] = (),
        restart_policy: str | None = None,
    ) -> Self:
        """With one more init container; restart policy Always makes it a sidecar."""
        added = structs.replace(_container(name, requests, claims), restart_policy=restart_policy)
        return self._with_spec(init_containers=(*self._object.spec.init_containers, added))

    def claim(self, name: str, *, claim: str | None = None, template: str | None = None) -> Self:
        """Needs an existing claim, or one made from a template."""
        entry = pods.PodResourceClaim(name=name, resource_claim_name=claim, resource_claim_template_name=template)
        return self._with_spec(resource_claims=(*self._object.spec.resource_claims, entry))

    def on_node(self, name: str) -> Self:
        """Bound to a node."""
        return self._with_spec(node_name=name)

    def phase(self, phase: str) -> Self:
        """In this phase."""
        return self._with(status=structs.replace(self._object.status, phase=phase))

    def spec(self, **fields: object) -> Self:
        """With any other field of the pod's spec."""
        return self._with_spec(**fields)

    def _with_spec(self, **changes: object) -> Self:
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
    """A pod without containers."""
    return PodBuilder(pods.Pod(metadata=meta.ObjectMeta(name=name, namespace=namespace)))


def job(name: str, template: PodBuilder, *, completions: int = 1, parallelism: int = 1) -> builder.Builder[jobs.Job]:
    """A job whose pods look like ``template``."""
    built = template.build()
    spec = jobs.JobSpec(
        completions=completions,
        parallelism=parallelism,
        template=jobs.PodTemplateSpec(metadata=meta.ObjectMeta(labels=built.metadata.labels), spec=built.spec),
    )
    metadata = meta.ObjectMeta(name=name, namespace=built.metadata.namespace)
    return builder.Builder(jobs.Job(metadata=metadata, spec=spec))
