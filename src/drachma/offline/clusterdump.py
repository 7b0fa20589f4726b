"""The cluster that manifests or a ``kubectl get -o yaml`` dump describe, as far as devices are concerned.

Read by commands that work offline. Objects of other groups are passed over; of ``resource.k8s.io`` everything must be
readable. Refused, with the place: what cannot be read, objects without a name, and objects given twice. Objects without
a namespace go to "default".
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
from drachma.offline import manifestfiles, objectfiles, placement, workloadpods

KINDS: Final[tuple[type[meta.Object], ...]] = (
    deviceclass.DeviceClass,
    devicetaintrule.DeviceTaintRule,
    namespace.Namespace,
    node.Node,
    resourceclaim.ResourceClaim,
    resourceslice.ResourceSlice,
)
"""What devices that claims get depend on."""

_READ: Final = frozenset({*(kind.__name__ for kind in KINDS), "ResourceClaimTemplate"})
_WRITTEN_BY_PEOPLE: Final = (
    deviceclass.DeviceClass,
    devicetaintrule.DeviceTaintRule,
    resourceclaim.ResourceClaim,
    resourceclaimtemplate.ResourceClaimTemplate,
)
_ObjectT = TypeVar("_ObjectT", bound=meta.Object)


class DumpedClaim:
    """A claim as it was written, and in the version it was written in."""

    def __init__(self, claim: resourceclaim.ResourceClaim, *, api_version: str, now: datetime) -> None:
        self.name = identity.label(claim.metadata)
        self.api_version = api_version
        self.defaulted = defaults.apply(claim, now=now)
        """What a server would make of it."""
        self._written = claim

    def allocated(self, result: resourceclaim.AllocationResult) -> dict[str, Any]:
        """The document of the claim with this allocation in its status."""
        status = structs.replace(self._written.status, allocation=result)
        return codec.encode(structs.replace(self._written, status=status), api_version=self.api_version)


class ClusterDump:
    """Objects by kind, in the order in which they were read."""

    def __init__(self) -> None:
        self._files = objectfiles.ObjectFiles()
        self._objects: list[meta.Object] = []
        self._declared: dict[str, tuple[str, ...]] = {}
        self.claims: dict[str, DumpedClaim] = {}
        self.pods: dict[str, tuple[str, ...]] = {}
        """The claims that pods which no server has seen would get from templates, by the pods' names."""
        self.claims_of: dict[str, tuple[str, ...]] = {}
        """All claims of pods, seen by a server or not, by the pods' names; as far as they have one."""
        self._workloads: list[manifestfiles.Source] = []
        self.warnings = self._files.warnings
        self.problems = self._files.problems
        """What could not be read; a cluster with problems is not to be trusted."""

    @classmethod
    def read(cls, paths: list[str]) -> ClusterDump:
        """All that is in these files and folders."""
        dump = cls()
        dump._files.read(paths, dump.add)
        dump.draft()
        return dump

    def add(self, source: manifestfiles.Source) -> None:
        """Take in one object; DecodeError where it cannot be read or is there already."""
        document = source.content
        if _is_new_workload(document):
            self._workloads.append(source)
            return
        if _is_pod(document):
            seen = placement.placed(codec.decode(document))
            assert isinstance(seen, pod.Pod), "pods are decoded as pods"
            self._take_claims(seen)
            return
        if not _is_relevant(document):
            return
        api_version, kind = codec.type_of(document)
        dumped = self._files.accept(source, codec.decode(document), namespaced=kind.namespaced)
        if isinstance(dumped, _WRITTEN_BY_PEOPLE):
            unknown = codec.unknown_fields(document)
            told = [f"{source.place}: {codec.title(document)}: {path}: unknown field" for path in unknown]
            # What a server has stored, it knows; what a person wrote is likely a slip.
            (self.warnings if dumped.metadata.uid else self.problems).extend(told)
        if isinstance(dumped, resourceclaim.ResourceClaim):
            claim = DumpedClaim(dumped, api_version=api_version, now=self._files.now)
            self.claims[claim.name] = claim
        if isinstance(dumped, node.Node):
            self._declared[dumped.metadata.name] = _declared_features(document)
        self._objects.append(defaults.apply(dumped, now=self._files.now))

    def draft(self) -> None:
        """Make the claims that new pods, and those of new workloads, would get from templates."""
        known = {identity.label(each.metadata): each for each in self.of(resourceclaimtemplate.ResourceClaimTemplate)}
        for source in self._workloads:
            try:
                for each in workloadpods.pods(source.content, nodes=len(self.nodes())):
                    self._draft(each, known)
            except errors.DrachmaError as error:
                self.problems.append(f"{source.place}: {error}")

    def _take_claims(self, of: pod.Pod) -> None:
        place = of.metadata.namespace
        self.claims_of[identity.label(of.metadata)] = tuple(f"{place}/{name}" for name in podclaims.all_names(of))

    def _draft(self, of: pod.Pod, known: Mapping[str, resourceclaimtemplate.ResourceClaimTemplate]) -> None:
        names = []
        self._take_claims(of)
        for entry in of.spec.resource_claims:
            if entry.resource_claim_template_name is None:
                continue
            wanted = f"{of.metadata.namespace}/{entry.resource_claim_template_name}"
            if wanted not in known:
                raise errors.DecodeError(
                    f"pod {identity.label(of.metadata)}: there is no ResourceClaimTemplate {wanted}"
                )
            drafted = templates.claim(known[wanted], owner=of, entry=entry)
            name = f"{of.metadata.name}-{entry.name}"
            metadata = structs.replace(drafted.metadata, name=name, generate_name="", owner_references=())
            claim = structs.replace(drafted, metadata=metadata)
            dumped = DumpedClaim(claim, api_version=f"{scheme.RESOURCE_GROUP}/v1", now=self._files.now)
            if dumped.name in self.claims:
                raise errors.DecodeError(
                    f"claim {dumped.name}: is given, and pod {of.metadata.name} would get one of its name"
                )
            self.claims[dumped.name] = dumped
            names.append(dumped.name)
        if names:
            title = identity.label(of.metadata)
            self.pods[title] = tuple(names)
            self.claims_of[title] += tuple(names)

    def of(self, model: type[_ObjectT]) -> list[_ObjectT]:
        """All objects of a kind."""
        return [each for each in self._objects if isinstance(each, model)]

    def nodes(self) -> dict[str, allocator.Node]:
        """The nodes by name, in the order of names; where there are none, those that slices name."""
        nodes = {
            entry.metadata.name: allocator.Node.of(entry, declared_features=self._declared[entry.metadata.name])
            for entry in self.of(node.Node)
        }
        if not nodes:
            nodes = {name: allocator.Node(name) for name in self.named_nodes()}
        return dict(sorted(nodes.items()))

    def named_nodes(self) -> frozenset[str]:
        """The nodes that slices and their devices name."""
        slices = self.of(resourceslice.ResourceSlice)
        by_slice = {entry.spec.node_name for entry in slices}
        by_device = {device.node_name for entry in slices for device in entry.spec.devices}
        return frozenset(name for name in by_slice | by_device if name)

    def namespace_labels(self, name: str) -> Mapping[str, str] | None:
        """The labels of a namespace, None where it is not given."""
        return next(
            (entry.metadata.labels for entry in self.of(namespace.Namespace) if entry.metadata.name == name), None
        )

    def catalog(self, enabled: gates.Gates) -> allocator.Catalog:
        """All slices, with the taints of rules unless these are switched off."""
        rules = self.of(devicetaintrule.DeviceTaintRule) if enabled.on(gates.Gate.DEVICE_TAINT_RULES) else ()
        return allocator.Catalog(self.of(resourceslice.ResourceSlice), taint_rules=rules)


def _is_relevant(document: Any) -> bool:
    """Whether it is about devices; what is broken beyond recognition counts, so that it is reported."""
    if not isinstance(document, dict):
        return True
    api_version, kind = document.get("apiVersion"), document.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return True
    if api_version.partition("/")[0] == scheme.RESOURCE_GROUP:
        return kind in _READ or not _is_known(api_version, kind)
    return api_version == "v1" and kind in _READ


def _is_new_workload(document: Any) -> bool:
    """Whether pods would be made of a document, or it is one, and no server has seen it."""
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
