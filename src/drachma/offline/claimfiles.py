"""Claims and devices of a cluster, from manifests or a ``kubectl get -o yaml`` dump, for ``drachma allocate``.

Objects of other groups are ignored. All objects of ``resource.k8s.io`` must be readable. Unreadable objects, objects
without a name, and objects given twice are problems, reported with their place. Objects without a namespace go to
"default".
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, TypeVar

from msgspec import structs

from drachma import allocator, errors
from drachma.api import (
    codec,
    defaults,
    deviceclass,
    devicetaintrule,
    gates,
    meta,
    namespace,
    node,
    pod,
    resourceclaim,
    resourceclaimtemplate,
    resourceslice,
    scheme,
)
from drachma.claims import identity, podclaims, templates
from drachma.offline import manifestfiles, objectfiles, workloadpods
from drachma.scheduler.snapshot import kinds

_READ: Final = frozenset(
    {"ResourceClaimTemplate", *(row.kind.__name__ for row in kinds.TABLE if row.decides_devices)},
)
_WRITTEN_BY_PEOPLE: Final = (
    deviceclass.DeviceClass,
    devicetaintrule.DeviceTaintRule,
    resourceclaim.ResourceClaim,
    resourceclaimtemplate.ResourceClaimTemplate,
)
_ObjectT = TypeVar("_ObjectT", bound=meta.Object)


class WrittenClaim:
    """Claim as it was written, with its API version."""

    def __init__(self, claim: resourceclaim.ResourceClaim, *, api_version: str, now: datetime) -> None:
        self.name = identity.label(claim.metadata)
        self.api_version = api_version
        self.defaulted = defaults.apply(claim, now=now)
        """Claim with the server's defaults."""
        self._written = claim

    def allocated(self, result: resourceclaim.AllocationResult) -> dict[str, Any]:
        """Return the document of the claim with an allocation in its status."""
        status = structs.replace(self._written.status, allocation=result)
        return codec.encode(structs.replace(self._written, status=status), api_version=self.api_version)


class ClaimFiles:
    """Content of files for an allocator, without a scheduler: claims, devices and nodes, in the order of the files.

    ``drachma explain`` and :meth:`drachma.testing.Cluster.explain` need whole clusters: :class:`simulate.ClusterState`.
    """

    def __init__(self) -> None:
        self._files = objectfiles.ObjectFiles()
        self._objects: list[meta.Object] = []
        self._declared: dict[str, tuple[str, ...]] = {}
        self.claims: dict[str, WrittenClaim] = {}
        self.pods: dict[str, tuple[str, ...]] = {}
        """Claims that pods without a uid would get from templates, by the pods' names."""
        self.claims_of: dict[str, tuple[str, ...]] = {}
        """All existing or future claims of pods, by the pods' names."""
        self._workloads: list[manifestfiles.Source] = []
        self.warnings = self._files.warnings
        self.problems = self._files.problems
        """Messages about unreadable objects. A cluster with problems must not be used."""

    @classmethod
    def read(cls, paths: list[str]) -> ClaimFiles:
        """Return the objects in files and folders."""
        claim_files = cls()
        claim_files._files.read(paths, claim_files.add)
        claim_files.draft()
        return claim_files

    def add(self, source: manifestfiles.Source) -> None:
        """Add one object. Raises DecodeError if it is unreadable or was given before."""
        document = source.content
        if _is_new_workload(document):
            self._workloads.append(source)
            return
        if _is_pod(document):
            decoded_pod = manifestfiles.with_namespace(codec.decode(document))
            assert isinstance(decoded_pod, pod.Pod), "pods are decoded as pods"
            self._take_claims(decoded_pod)
            return
        if not _is_relevant(document):
            return
        api_version, kind = codec.type_of(document)
        decoded = self._files.accept(source, codec.decode(document), namespaced=kind.namespaced)
        if isinstance(decoded, _WRITTEN_BY_PEOPLE):
            unknown = codec.unknown_fields(document)
            messages = [f"{source.place}: {codec.title(document)}: {path}: unknown field" for path in unknown]
            # A server knows the fields of objects that it stored. In a manifest, an unknown field is probably a
            # mistake.
            (self.warnings if decoded.metadata.uid else self.problems).extend(messages)
        if isinstance(decoded, resourceclaim.ResourceClaim):
            claim = WrittenClaim(decoded, api_version=api_version, now=self._files.now)
            self.claims[claim.name] = claim
        if isinstance(decoded, node.Node):
            self._declared[decoded.metadata.name] = _declared_features(document)
        self._objects.append(defaults.apply(decoded, now=self._files.now))

    def draft(self) -> None:
        """Create the claims that new pods, and pods of new workloads, would get from templates."""
        templates_by_name = {
            identity.label(each.metadata): each for each in self.of(resourceclaimtemplate.ResourceClaimTemplate)
        }
        for source in self._workloads:
            try:
                for each in workloadpods.pods(source.content, nodes=len(self.nodes())):
                    self._draft(each, templates_by_name)
            except errors.DrachmaError as error:
                self.problems.append(f"{source.place}: {error}")

    def _take_claims(self, user: pod.Pod) -> None:
        place = user.metadata.namespace
        self.claims_of[identity.label(user.metadata)] = tuple(f"{place}/{name}" for name in podclaims.all_names(user))

    def _draft(
        self, user: pod.Pod, templates_by_name: Mapping[str, resourceclaimtemplate.ResourceClaimTemplate]
    ) -> None:
        names = []
        self._take_claims(user)
        for entry in user.spec.resource_claims:
            if entry.resource_claim_template_name is None:
                continue
            template_name = f"{user.metadata.namespace}/{entry.resource_claim_template_name}"
            if template_name not in templates_by_name:
                raise errors.DecodeError(
                    f"pod {identity.label(user.metadata)}: there is no ResourceClaimTemplate {template_name}"
                )
            drafted = templates.claim(templates_by_name[template_name], owner=user, entry=entry)
            name = f"{user.metadata.name}-{entry.name}"
            metadata = structs.replace(drafted.metadata, name=name, generate_name="", owner_references=())
            claim = structs.replace(drafted, metadata=metadata)
            written = WrittenClaim(claim, api_version=f"{scheme.RESOURCE_GROUP}/v1", now=self._files.now)
            if written.name in self.claims:
                raise errors.DecodeError(
                    f"claim {written.name}: is given, and pod {user.metadata.name} would get one of its name"
                )
            self.claims[written.name] = written
            names.append(written.name)
        if names:
            title = identity.label(user.metadata)
            self.pods[title] = tuple(names)
            self.claims_of[title] += tuple(names)

    def of(self, model: type[_ObjectT]) -> list[_ObjectT]:
        """Return all objects of a kind."""
        return [each for each in self._objects if isinstance(each, model)]

    def nodes(self) -> dict[str, allocator.Node]:
        """Return the nodes by name, in the order of names. Without Node objects, return the nodes that slices name."""
        nodes = {
            entry.metadata.name: allocator.Node.of(entry, declared_features=self._declared[entry.metadata.name])
            for entry in self.of(node.Node)
        }
        if not nodes:
            nodes = {name: allocator.Node(name) for name in self.nodes_of_slices()}
        return dict(sorted(nodes.items()))

    def nodes_of_slices(self) -> frozenset[str]:
        """Return the nodes that slices and their devices name."""
        slices = self.of(resourceslice.ResourceSlice)
        by_slice = {entry.spec.node_name for entry in slices}
        by_device = {device.node_name for entry in slices for device in entry.spec.devices}
        return frozenset(name for name in by_slice | by_device if name)

    def namespace_labels(self, name: str) -> Mapping[str, str] | None:
        """Return the labels of a namespace, or None if it is not given."""
        return next(
            (entry.metadata.labels for entry in self.of(namespace.Namespace) if entry.metadata.name == name), None
        )

    def catalog(self, enabled: gates.Gates) -> allocator.Catalog:
        """Return all slices, with the taints of rules unless the feature is off."""
        rules = self.of(devicetaintrule.DeviceTaintRule) if enabled.on(gates.Gate.DEVICE_TAINT_RULES) else ()
        return allocator.Catalog(self.of(resourceslice.ResourceSlice), taint_rules=rules)


def _is_relevant(document: Any) -> bool:
    """Return True if a document is about devices. Documents without a kind count, so that they are reported."""
    if not isinstance(document, dict):
        return True
    api_version, kind = document.get("apiVersion"), document.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return True
    if api_version.partition("/")[0] == scheme.RESOURCE_GROUP:
        return kind in _READ or not _is_known(api_version, kind)
    return api_version == "v1" and kind in _READ


def _is_new_workload(document: Any) -> bool:
    """Return True for a pod or workload without a uid."""
    if not isinstance(document, dict) or not isinstance(document.get("metadata"), dict):
        return False
    kind = (str(document.get("apiVersion")), str(document.get("kind")))
    return kind in workloadpods.KINDS and not document["metadata"].get("uid")


def _is_pod(document: Any) -> bool:
    return isinstance(document, dict) and (document.get("apiVersion"), document.get("kind")) == ("v1", "Pod")


def _is_known(api_version: str, kind: str) -> bool:
    try:
        scheme.find(api_version, kind)
    except errors.DecodeError:
        return False
    return True


def _declared_features(document: Any) -> tuple[str, ...]:
    status = document.get("status")
    declared = status.get("declaredFeatures") if isinstance(status, dict) else None
    if declared is None:
        return ()
    if not isinstance(declared, list) or not all(isinstance(entry, str) for entry in declared):
        raise errors.DecodeError(f"{codec.title(document)}: status.declaredFeatures: expected a list of strings")
    return tuple(declared)
