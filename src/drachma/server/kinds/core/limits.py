"""Limit ranges and resource quotas."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Write
from drachma.validation import quota as rules
from drachma.values import quantity


class LimitRangeStrategy(DocumentStrategy):
    rechecks_names = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        spec = content.get("spec") or {}
        if spec.get("limits"):
            content["spec"] = {**spec, "limits": list(map(_with_defaults, spec["limits"]))}

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        # A limit range without a name gets its uid as its name.
        if not metadata.get("name"):
            metadata["name"] = metadata["uid"]


def _with_defaults(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an item with defaults: the limit defaults to the maximum, the request to the limit or the minimum."""
    if item.get("type") != "Container":
        return item
    limits = {**(item.get("max") or {}), **(item.get("default") or {})}
    requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
    defaults = {"default": limits, "defaultRequest": requests}
    return {**item, **{field: dict(sorted(amounts.items())) for field, amounts in defaults.items() if amounts}}


LIMIT_RANGE: Final = Kind(
    group="",
    versions=("v1",),
    plural="limitranges",
    kind="LimitRange",
    namespaced=True,
    short_names=("limits",),
    traits=resources.Traits(creates_on_update=True),
    layout=layout.CREATED,
    rules=rules.KINDS["LimitRange"],
    strategy=LimitRangeStrategy,
)


def _quota_cells(quota: Document, now: datetime) -> layout.Cells:
    status = cells.part(quota, "status")
    requests: list[str] = []
    limits: list[str] = []
    for name, hard in sorted((status.get("hard") or {}).items()):
        used = (status.get("used") or {}).get(name, "0")
        column = limits if name.startswith("limits.") else requests
        column.append(f"{name}: {_canonical(used)}/{_canonical(hard)}")
    return [cells.name(quota), ", ".join(requests), ", ".join(limits), cells.since_creation(quota, now)]


def _canonical(amount: Any) -> str:
    return str(quantity.Quantity.parse(str(amount)))


RESOURCE_QUOTA: Final = Kind(
    group="",
    versions=("v1",),
    plural="resourcequotas",
    kind="ResourceQuota",
    namespaced=True,
    short_names=("quota",),
    subresources=(resources.status(),),
    traits=resources.Traits(returns_deleted=True),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Request", "Used and allowed requests."),
            layout.text("Limit", "Used and allowed limits."),
            layout.AGE,
        ),
        _quota_cells,
    ),
    rules=rules.KINDS["ResourceQuota"],
    strategy=DocumentStrategy,
)
