"""Kinds of ``resource.k8s.io`` from v1alpha3 on: claims, claim templates, slices, device classes and taint rules."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from drachma.api import deviceclass, devicetaintrule, meta, resourceclaim, resourceclaimtemplate, resourceslice, scheme
from drachma.server.kinds.resource import claimstrategy, devicestrategy
from drachma.server.surface import age, cells, layout, resources, selectable
from drachma.server.surface.apisurface import Kind, MakeFastPath, MakeStrategy

_FIRST_BETA: Final = resources.Deprecation(deprecated=35, removed=38)
_SECOND_BETA: Final = resources.Deprecation(deprecated=36, removed=39)

_BEFORE_V1: Final = {
    "v1alpha3": resources.Deprecation(deprecated=34, removed=37),
    "v1beta1": _FIRST_BETA,
    "v1beta2": _SECOND_BETA,
}

_RETURNED: Final = resources.Traits(returns_deleted=True)

STATUS: Final = resources.status(("metadata",), ("spec",))
"""Status subresource of claims and taint rules; a write to it does not change metadata."""


def _kind(
    shape: type[meta.Object],
    *,
    subresources: tuple[resources.Subresource, ...] = (),
    storage_version: str = "v1",
    deprecations: Mapping[str, resources.Deprecation] = _BEFORE_V1,
    traits: resources.Traits = _RETURNED,
    table: layout.Layout = layout.PLAIN,
    fields: selectable.Selectable = selectable.BY_NAME,
    strategy: MakeStrategy = devicestrategy.DeviceStrategy,
    fast_path: MakeFastPath = devicestrategy.DeviceFastPath,
) -> Kind:
    """Return the record of the kind whose struct is ``shape``."""
    kind = scheme.of(shape)
    return Kind(
        group=kind.group,
        versions=kind.versions,
        plural=kind.plural,
        kind=kind.name,
        namespaced=kind.namespaced,
        model=kind,
        subresources=subresources,
        storage_version=storage_version,
        deprecations=deprecations,
        traits=traits,
        layout=table,
        selectable=fields,
        strategy=strategy,
        fast_path=fast_path,
    )


DEVICE_CLASS: Final = _kind(deviceclass.DeviceClass)


def _rule_cells(rule: layout.Document, now: datetime) -> layout.Cells:
    taint = cells.part(cells.part(rule, "spec"), "taint")
    added = age.since(taint["timeAdded"], now=now) if taint.get("timeAdded") else ""
    parts = [taint.get(name, "") for name in ("key", "value", "effect")]
    return [cells.name(rule), *parts, added, cells.since_creation(rule, now)]


DEVICE_TAINT_RULE: Final = _kind(
    devicetaintrule.DeviceTaintRule,
    subresources=(STATUS,),
    storage_version="v1beta2",
    deprecations={
        "v1alpha3": _SECOND_BETA,
        "v1beta2": resources.Deprecation(deprecated=39, removed=42),
    },
    # Unlike its siblings, upstream answers its deletion with a Status.
    traits=resources.Traits(returns_deleted=False),
    table=layout.Layout(
        (
            layout.NAME,
            layout.text("Key", "The key of the taint."),
            layout.text("Value", "The value of the taint."),
            layout.text("Effect", "The effect on claims and pods that do not tolerate the taint."),
            layout.text("TimeAdded", "The age of the taint."),
            layout.AGE,
        ),
        _rule_cells,
    ),
)


def _claim_cells(claim: layout.Document, now: datetime) -> layout.Cells:
    status, is_deleted = cells.part(claim, "status"), bool(claim["metadata"].get("deletionTimestamp"))
    states = ["deleted"] if is_deleted else []
    if status.get("allocation") is not None:
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    elif not is_deleted:
        states.append("pending")
    return [cells.name(claim), ",".join(states), cells.since_creation(claim, now)]


RESOURCE_CLAIM: Final = _kind(
    resourceclaim.ResourceClaim,
    subresources=(STATUS,),
    table=layout.Layout(
        (
            layout.NAME,
            layout.text("State", "A summary of the current state (allocated, pending, reserved, etc.)."),
            layout.AGE,
        ),
        _claim_cells,
    ),
    strategy=claimstrategy.ClaimStrategy,
    fast_path=claimstrategy.ClaimFastPath,
)


RESOURCE_CLAIM_TEMPLATE: Final = _kind(
    resourceclaimtemplate.ResourceClaimTemplate,
    strategy=claimstrategy.ClaimStrategy,
    fast_path=claimstrategy.ClaimFastPath,
)


def _slice_cells(slice_: layout.Document, now: datetime) -> layout.Cells:
    spec = cells.part(slice_, "spec")
    pool = cells.part(spec, "pool").get("name", "")
    node, driver = spec.get("nodeName") or "", spec.get("driver", "")
    return [cells.name(slice_), node, driver, pool, cells.since_creation(slice_, now)]


RESOURCE_SLICE: Final = _kind(
    resourceslice.ResourceSlice,
    table=layout.Layout(
        (
            layout.NAME,
            layout.text("Node", "The node whose devices these are."),
            layout.text("Driver", "The driver that published the slice."),
            layout.text("Pool", "The pool that the slice is part of."),
            layout.AGE,
        ),
        _slice_cells,
    ),
    fields=selectable.Selectable(fields=frozenset({selectable.NAME, "spec.nodeName", "spec.driver", "spec.pool.name"})),
)
