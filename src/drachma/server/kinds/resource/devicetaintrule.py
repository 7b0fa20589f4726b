"""Taint rules: a taint on all devices that a selector names."""

from datetime import datetime
from typing import Final

from drachma.api import devicetaintrule
from drachma.server.kinds.resource import devicekind
from drachma.server.surface import age, cells, layout, resources


def _cells(rule: layout.Document, now: datetime) -> layout.Cells:
    taint = cells.part(cells.part(rule, "spec"), "taint")
    added = age.since(taint["timeAdded"], now=now) if taint.get("timeAdded") else ""
    parts = [taint.get(name, "") for name in ("key", "value", "effect")]
    return [cells.name(rule), *parts, added, cells.since_creation(rule, now)]


KIND: Final = devicekind.of(
    devicetaintrule.DeviceTaintRule,
    subresources=(devicekind.STATUS,),
    storage_version="v1beta2",
    deprecations={
        "v1alpha3": devicekind.SECOND_BETA,
        "v1beta2": resources.Deprecation(deprecated=39, removed=42),
    },
    # Unlike its siblings, upstream answers its deletion with a Status.
    traits=resources.Traits(returns_deleted=False),
    table=layout.Layout(
        (
            layout.NAME,
            layout.text("Key", "The key of the taint."),
            layout.text("Value", "The value of the taint."),
            layout.text("Effect", "What the taint does to claims and pods that do not tolerate it."),
            layout.text("TimeAdded", "How long ago the taint was added."),
            layout.AGE,
        ),
        _cells,
    ),
)
