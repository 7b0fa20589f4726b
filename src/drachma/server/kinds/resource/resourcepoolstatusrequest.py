"""Resource pool status requests, answered in their status with the numbers of devices of pools."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy, restore_fields
from drachma.server.surface import age, cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Write
from drachma.validation import resourcepoolstatusrequest

_POOLS: Final = 100


class ResourcePoolStatusRequestStrategy(DocumentStrategy):
    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        content["spec"] = {"limit": _POOLS, **(content.get("spec") or {})}

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content.pop("status", None)

    def prepare_update(self, content: Document, old: Mapping[str, Any], write: Write) -> None:
        restore_fields(content, old, "status")

    def updates_unconditionally(self, write: Write) -> bool:
        return False


def _cells(request: Document, now: datetime) -> layout.Cells:
    status = cells.part(request, "status")
    done = {each.get("type"): each for each in status.get("conditions") or () if each.get("status") == "True"}
    pools, count = status.get("pools") or [], status.get("poolCount", 0)
    word, counts, completed = "Pending", ["-"] * 5, "<none>"
    if status and "Failed" not in done:
        fields = ("totalDevices", "availableDevices", "allocatedDevices", "unavailableDevices")
        counts = [str(sum(pool.get(field) or 0 for pool in pools)) for field in fields]
        counts.append(str(sum(1 for pool in pools if pool.get("validationError"))))
    if "Complete" in done:
        word = f"Complete ({len(pools)}/{count} pools)" if count > len(pools) else "Complete"
        completed = age.since(done["Complete"].get("lastTransitionTime"), now=now)
    elif "Failed" in done:
        word = "Failed"
    return [cells.name(request), cells.part(request, "spec").get("driver", ""), *counts, count, word, completed]


KIND: Final = Kind(
    group="resource.k8s.io",
    versions=("v1alpha3",),
    plural="resourcepoolstatusrequests",
    kind="ResourcePoolStatusRequest",
    namespaced=False,
    storage_version="v1alpha3",
    subresources=(resources.status(),),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Driver", "The driver to query pools for."),
            layout.text("Total", "Total number of devices across all pools."),
            layout.text("Available", "Number of available devices across all pools."),
            layout.text("Allocated", "Number of allocated devices across all pools."),
            layout.text("Unavailable", "Number of unavailable devices across all pools."),
            layout.text("Errors", "Number of pools with validation errors."),
            layout.integer("Pools", "Total number of matching pools."),
            layout.text("Status", "Processing status."),
            layout.text("Completed", "Time since the observation completed."),
        ),
        _cells,
    ),
    rules=resourcepoolstatusrequest.KINDS["ResourcePoolStatusRequest"],
    strategy=ResourcePoolStatusRequestStrategy,
)
