"""LimitRanger: containers get the default requests and limits of their namespace, and must keep its bounds."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from drachma.accounting import limitranges
from drachma.api import codec, limitrange, persistentvolumeclaim, pod
from drachma.server.admission import podspecs
from drachma.server.admission.proposal import Proposal
from drachma.server.reads.reader import Reader
from drachma.server.surface.strategy import Write

VOLUME_CLAIMS: Final = frozenset({"persistentvolumeclaims"})

_RANGES: Final = "limitranges"
_ANNOTATION: Final = "kubernetes.io/limit-ranger"
_SUBRESOURCES: Final = frozenset({"", "resize"})

_Amounts: TypeAlias = tuple[tuple[str, str], ...]


class LimitRanger:
    """Applies the limit ranges of a namespace to pods and volume claims."""

    def __init__(self, store: Reader) -> None:
        self._store = store

    def has_ranges(self, _write: Write) -> bool:
        """Return True if there may be limit ranges."""
        return bool(self._store.changed(_RANGES))

    def admit(self, proposal: Proposal) -> None:
        """Set the defaults of a pod's containers, and list them in an annotation."""
        if not self._store.changed(_RANGES):
            return
        for each in self._ranges(proposal):
            containers = [item for item in each["spec"].get("limits") or () if item["type"] == limitranges.CONTAINER]
            limits, requests = (_merge_defaults(containers, field) for field in ("default", "defaultRequest"))
            notes = list(_notes(proposal.subject.content["spec"], limits, requests))
            if notes:
                podspecs.change(proposal, _set_defaults, limits, requests)
                metadata = proposal.subject.metadata
                note = f"LimitRanger plugin set: {'; '.join(notes)}"
                metadata["annotations"] = {**metadata.get("annotations", {}), _ANNOTATION: note}

    def validate(self, proposal: Proposal) -> None:
        """Refuse amounts that are out of bounds."""
        if not self._store.changed(_RANGES):
            return
        for each in self._ranges(proposal):
            limits = _read(each, limitrange.LimitRange).spec.limits
            document = proposal.document()
            if proposal.write.resource.group_resource in VOLUME_CLAIMS:
                claim = _read(document, persistentvolumeclaim.PersistentVolumeClaim)
                problems = list(limitranges.volume_claim_problems(claim, limits))
            else:
                problems = list(limitranges.pod_problems(_read(document, pod.Pod), limits))
            if problems:
                several = list(dict.fromkeys(problems))
                raise proposal.forbidden(several[0] if len(several) == 1 else f"[{', '.join(several)}]")

    def _ranges(self, proposal: Proposal) -> Iterator[Mapping[str, Any]]:
        write, existing = proposal.write, proposal.stored
        # Objects that are being deleted are not checked.
        is_going = existing is not None and "deletionTimestamp" in existing.value["metadata"]
        if not is_going and write.subresource in _SUBRESOURCES:
            for each in self._store.list(_RANGES, write.namespace).records:
                yield each.value


def _merge_defaults(items: list[dict[str, Any]], field: str) -> _Amounts:
    amounts: dict[str, str] = {}
    for item in items:
        amounts.update(item.get(field) or {})
    return tuple(sorted(amounts.items()))


def _notes(spec: podspecs.Spec, limits: _Amounts, requests: _Amounts) -> Iterator[str]:
    for field, title in (("containers", "container"), ("initContainers", "init container")):
        for container in spec.get(field) or ():
            stated = container.get("resources") or {}
            for kind, word, defaults in (("requests", "request", requests), ("limits", "limit", limits)):
                names = [name for name, _ in defaults if name not in (stated.get(kind) or {})]
                if names:
                    yield f"{', '.join(names)} {word} for {title} {container.get('name', '')}"


def _set_defaults(spec: podspecs.Spec, limits: _Amounts, requests: _Amounts) -> podspecs.Spec:
    def completed(container: dict[str, Any]) -> dict[str, Any]:
        stated = dict(container.get("resources") or {})
        for kind, defaults in (("limits", limits), ("requests", requests)):
            amounts = {**dict(defaults), **(stated.get(kind) or {})}
            if amounts:
                stated[kind] = dict(sorted(amounts.items()))
        return {**container, "resources": stated}

    fields = [field for field in ("containers", "initContainers") if spec.get(field)]
    return {**spec, **{field: list(map(completed, spec[field])) for field in fields}}


def _read(document: Mapping[str, Any], model: Any) -> Any:
    return codec.view(document, model)
