"""Priority classes: named priorities that pods can have."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject
from drachma.validation import fielderror, metadata, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path

_PREEMPTION_POLICIES: Final = ("Never", "PreemptLowerPriority")
_HIGHEST_USER_PRIORITY: Final = 1_000_000_000
_SYSTEM_PREFIX: Final = "system-"
SYSTEM_CLASSES: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
"""The classes that every cluster has, with their values."""

_TYPES: Final = """\
PriorityClass: apiVersion=str description=str globalDefault=bool kind=str metadata=ObjectMeta! preemptionPolicy=str?
    value=int32!/0
"""
_NUMBERS: Final = """\
PriorityClass: metadata value globalDefault description preemptionPolicy
"""
_TEXTS: Final = """\
PriorityClass: A named priority that pods can have.
PriorityClass.value: The priority; pods of higher priority are scheduled first.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.scheduling.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META,)
)


class PriorityClassStrategy(DocumentStrategy):
    counts_generations = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        if not content.get("preemptionPolicy"):
            content["preemptionPolicy"] = "PreemptLowerPriority"
        content.setdefault("value", 0)

    def check(self, content: Document, subject: Subject) -> Errors:
        value, name = content["value"], subject.metadata.get("name", "")
        if name.startswith(_SYSTEM_PREFIX):
            yield from _system_class(name, value)
        elif value > _HIGHEST_USER_PRIORITY:
            detail = f"maximum allowed value of a user defined priority is {_HIGHEST_USER_PRIORITY}"
            yield fielderror.forbidden(Path("value"), detail)
        policy = content["preemptionPolicy"]
        if policy not in _PREEMPTION_POLICIES:
            allowed = ("PreemptLowerPriority", "Never")
            yield fielderror.not_supported(Path("preemptionPolicy"), rendering.named(policy), allowed)

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        if content["value"] != old.get("value", 0):
            yield fielderror.forbidden(Path("value"), "may not be changed in an update.")
        if content["preemptionPolicy"] != old.get("preemptionPolicy"):
            yield fielderror.invalid(
                Path("preemptionPolicy"), rendering.named(content["preemptionPolicy"]), metadata.IMMUTABLE
            )

    def _is_changed(self, content: Document, old: Mapping[str, Any]) -> bool:
        return False


def _system_class(name: str, value: int) -> Errors:
    if SYSTEM_CLASSES.get(name) == value:
        return
    problem = "is not a known system priority class"
    if name in SYSTEM_CLASSES:
        problem = f"value of {name} PriorityClass must be {SYSTEM_CLASSES[name]}"
    shown = problem if name in SYSTEM_CLASSES else f"{name} {problem}"
    detail = f"priority class names with '{_SYSTEM_PREFIX}' prefix are reserved for system use only. error: {shown}"
    yield fielderror.forbidden(Path("metadata").child("name"), detail)


def _cells(class_: Document, now: datetime) -> layout.Cells:
    value, is_default = class_.get("value", 0), class_.get("globalDefault", False)
    policy = class_.get("preemptionPolicy") or ""
    return [cells.name(class_), value, is_default, cells.since_creation(class_, now), policy]


KIND: Final = Kind(
    group="scheduling.k8s.io",
    versions=("v1",),
    plural="priorityclasses",
    kind="PriorityClass",
    namespaced=False,
    short_names=("pc",),
    schemas={"v1": _PACKAGE.object("PriorityClass")},
    layout=layout.Layout(
        (
            layout.NAME,
            layout.integer("Value", "The priority that pods of the class have."),
            layout.Column("Global-Default", "boolean", description="Whether pods without a class get this one."),
            layout.AGE,
            layout.text("PreemptionPolicy", "Whether pods of the class may push others aside."),
        ),
        _cells,
    ),
    strategy=PriorityClassStrategy,
)
