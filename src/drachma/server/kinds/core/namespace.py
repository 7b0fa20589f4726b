"""Namespaces."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy, restore_fields
from drachma.server.surface import cells, layout, resources, selectable, verbs
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation import fielderror, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, Path
from drachma.values import names

NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"
NAMESPACE_FINALIZER: Final = "kubernetes"
_STANDARD_FINALIZERS: Final = (NAMESPACE_FINALIZER, "orphan", "foregroundDeletion")


def _label(name: str, *, is_prefix: bool) -> Sequence[str]:
    """Return the problems of a name that becomes a DNS label; a prefix may end in a dash."""
    return names.dns1123_label(name[:-1] + "a" if is_prefix and name.endswith("-") else name)


class NamespaceStrategy(DocumentStrategy):
    name_rule = staticmethod(_label)
    rechecks_names = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        if metadata.get("name"):
            metadata["labels"] = {**metadata.get("labels", {}), NAMESPACE_LABEL: metadata["name"]}

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        metadata["labels"] = {**metadata.get("labels", {}), NAMESPACE_LABEL: metadata.get("name", "")}
        content["status"] = {"phase": "Active"}
        spec = content["spec"] = dict(content.get("spec", {}))
        finalizers = spec.setdefault("finalizers", [])
        if NAMESPACE_FINALIZER not in finalizers:
            spec["finalizers"] = [*finalizers, NAMESPACE_FINALIZER]

    def prepare_update(self, content: Document, old: Mapping[str, Any], write: Write) -> None:
        restore_fields(content, old, "spec", "status")

    def prepare_status(self, content: Document, old: Mapping[str, Any], subject: Subject, write: Write) -> None:
        if write.subresource == "finalize":
            restore_fields(content, old, "status")
        else:
            restore_fields(content, old, "spec")

    def check_new(self, content: Document, subject: Subject) -> Errors:
        for name in (content.get("spec") or {}).get("finalizers") or ():
            yield from _finalizer(name, SPEC.child("finalizers"))

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        if content.get("spec") != old.get("spec"):
            for position, name in enumerate((content.get("spec") or {}).get("finalizers") or ()):
                yield from _finalizer(name, SPEC.child("finalizers").item(position))
            return
        phase = (content.get("status") or {}).get("phase", "")
        required_phase, when = (
            ("Terminating", "not empty") if subject.metadata.get("deletionTimestamp") else ("Active", "empty")
        )
        if phase != required_phase:
            detail = f"may only be '{required_phase}' if `deletionTimestamp` is {when}"
            yield fielderror.invalid(Path("status").child("Phase"), rendering.named(phase), detail)


def _finalizer(name: str, at: Path) -> Errors:
    yield from fielderror.problems(at, name, names.label_key(name))
    if "/" not in name and name not in _STANDARD_FINALIZERS:
        yield fielderror.invalid(at, name, "name is neither a standard finalizer name nor is it fully qualified")


def _cells(namespace: Document, now: datetime) -> layout.Cells:
    phase = cells.part(namespace, "status").get("phase", "")
    return [cells.name(namespace), phase, cells.since_creation(namespace, now)]


KIND: Final = Kind(
    group="",
    versions=("v1",),
    plural="namespaces",
    kind="Namespace",
    namespaced=False,
    verbs=tuple(verb for verb in verbs.ALL if verb != verbs.DELETE_COLLECTION),
    short_names=("ns",),
    subresources=(
        resources.Subresource(name="finalize", verbs=(verbs.UPDATE,), resets=(("status",),)),
        resources.status(),
    ),
    traits=resources.Traits(returns_deleted=True),
    layout=layout.Layout((layout.NAME, layout.text("Status", "Active or Terminating."), layout.AGE), _cells),
    selectable=selectable.Selectable(
        fields=frozenset({selectable.NAME, "status.phase"}), unknown=selectable.unknown_in_core
    ),
    strategy=NamespaceStrategy,
)
