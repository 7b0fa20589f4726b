"""Kinds of ``resource.k8s.io/v1alpha2``, which are stored apart from later versions."""

from datetime import datetime
from typing import Any, Final

import msgspec

from drachma.api import codec, defaults, meta, scheme
from drachma.api.v1alpha2 import parameters, resourceclaim, resourceclaimtemplate, resourceclass, resourceslice
from drachma.server.kinds.resource import devicekinds
from drachma.server.kinds.resource.devicestrategy import DeviceFastPath, DeviceStrategy
from drachma.server.schema import emptyfields
from drachma.server.surface import cells, layout, resources, selectable
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject

_VERSION: Final = "v1alpha2"
_GONE: Final = {_VERSION: resources.Deprecation(deprecated=29, removed=31)}

_decode = msgspec.json.Decoder().decode


class AlphaStrategy(DeviceStrategy):
    """Strategy of kinds with arbitrary fields: objects are encoded as a whole."""

    def document(self, subject: Subject) -> dict[str, Any]:
        content = msgspec.structs.replace(subject.content, metadata=meta.ABSENT_META)
        body: dict[str, Any] = _decode(codec.encode_part(defaults.canonical(content)))
        emptyfields.fill_containers(body, self._schema)
        head = {"kind": self._resource.kind, "apiVersion": self._api_version, "metadata": subject.metadata}
        return {**head, **{key: value for key, value in body.items() if key not in head}}


def _kind(
    shape: type[meta.Object],
    *,
    subresources: tuple[resources.Subresource, ...] = (),
    table: layout.Layout = layout.PLAIN,
    fields: selectable.Selectable = selectable.BY_NAME,
    has_namesake: bool = False,
) -> Kind:
    """Return the record of the kind whose struct is ``shape``.

    If it ``has_namesake``, each object has a counterpart in a later version, and quotas count the counterpart.
    """
    kind = scheme.of(shape)
    return Kind(
        group=kind.group,
        versions=kind.versions,
        plural=kind.plural,
        kind=kind.name,
        namespaced=kind.namespaced,
        model=kind,
        subresources=subresources,
        storage_version=_VERSION,
        # Kinds of later versions have the same names and are something else.
        stored_as=f"{kind.group}/{_VERSION}/{kind.plural}",
        deprecations=_GONE,
        traits=resources.Traits(returns_deleted=True, is_uncounted=has_namesake),
        layout=table,
        selectable=fields,
        strategy=AlphaStrategy,
        fast_path=DeviceFastPath,
    )


def _class_cells(class_: layout.Document, now: datetime) -> layout.Cells:
    return [cells.name(class_), class_.get("driverName", ""), cells.since_creation(class_, now)]


RESOURCE_CLASS: Final = _kind(
    resourceclass.ResourceClass,
    table=layout.Layout(
        (layout.NAME, layout.text("DriverName", "The driver that allocates claims of the class."), layout.AGE),
        _class_cells,
    ),
)


_CLASS: Final = layout.text("ResourceClassName", "The class of the claim.")
_MODE: Final = layout.text("AllocationMode", "The time of allocation.")


def _states(claim: layout.Document) -> str:
    status, is_deleted = cells.part(claim, "status"), bool(claim["metadata"].get("deletionTimestamp"))
    states = ["deleted"] if is_deleted else []
    if status.get("deallocationRequested"):
        states.append("deallocating")
    if status.get("allocation") is not None:
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    elif not is_deleted:
        states.append("pending")
    return ",".join(states)


def _request(spec: layout.Document) -> layout.Cells:
    return [spec.get("resourceClassName", ""), spec.get("allocationMode", "")]


def _claim_cells(claim: layout.Document, now: datetime) -> layout.Cells:
    request = _request(cells.part(claim, "spec"))
    return [cells.name(claim), *request, _states(claim), cells.since_creation(claim, now)]


def _template_cells(template: layout.Document, now: datetime) -> layout.Cells:
    request = _request(cells.part(cells.part(template, "spec"), "spec"))
    return [cells.name(template), *request, cells.since_creation(template, now)]


RESOURCE_CLAIM: Final = _kind(
    resourceclaim.ResourceClaim,
    has_namesake=True,
    subresources=(devicekinds.STATUS,),
    table=layout.Layout(
        (
            layout.NAME,
            _CLASS,
            _MODE,
            layout.text("State", "A summary of the current state (allocated, pending, reserved, etc.)."),
            layout.AGE,
        ),
        _claim_cells,
    ),
)
RESOURCE_CLAIM_TEMPLATE: Final = _kind(
    resourceclaimtemplate.ResourceClaimTemplate,
    table=layout.Layout((layout.NAME, _CLASS, _MODE, layout.AGE), _template_cells),
)


def _parameter_cells(document: layout.Document, now: datetime) -> layout.Cells:
    source = cells.part(document, "generatedFrom")
    origin = f"{source['kind']}/{source.get('name', '')}" if source.get("kind") else ""
    return [cells.name(document), origin, cells.since_creation(document, now)]


_TABLE: Final = layout.Layout(
    (layout.NAME, layout.text("GeneratedFrom", "The object that the parameters were generated from."), layout.AGE),
    _parameter_cells,
)
CLAIM_PARAMETERS: Final = _kind(parameters.ResourceClaimParameters, table=_TABLE)
CLASS_PARAMETERS: Final = _kind(parameters.ResourceClassParameters, table=_TABLE)


_COLUMNS: Final = (
    layout.NAME,
    layout.text("Node", "The node whose resources these are."),
    layout.text("Driver", "The driver that published the slice."),
    layout.AGE,
)


def _row(slice_: layout.Document, spec: layout.Document, now: datetime) -> layout.Cells:
    names = [spec.get("nodeName") or "", spec.get("driverName", "")]
    return [cells.name(slice_), *names, cells.since_creation(slice_, now)]


def _fields(*fields: str) -> selectable.Selectable:
    return selectable.Selectable(fields=frozenset({selectable.NAME, *fields}))


NODE_RESOURCE_SLICE: Final = _kind(
    resourceslice.NodeResourceSlice,
    table=layout.Layout(_COLUMNS, lambda slice_, now: _row(slice_, cells.part(slice_, "spec"), now)),
    fields=_fields("spec.nodeName", "spec.driverName"),
)
RESOURCE_SLICE: Final = _kind(
    resourceslice.ResourceSlice,
    table=layout.Layout(_COLUMNS, lambda slice_, now: _row(slice_, slice_, now)),
    fields=_fields("nodeName", "driverName"),
)
