"""Questions about pools of devices: how many there are, and how many are free. Their status is the answer."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy, taken
from drachma.server.schema import metatypes, notation
from drachma.server.surface import age, cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation import resourcepoolstatusrequest as rules
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
PartitionTypeStatus: allocatable=int32?* attribute=str* total=int32?* type=str*
PoolStatus: allocatedDevices=int32? availableDevices=int32? driver=str* generation=int64* nodeName=str?
    partitionSummary=[PartitionTypeStatus] poolName=str* resourceSliceCount=int32?
    shareableSummary=ShareableSummaryStatus totalDevices=int32? unavailableDevices=int32? validationError=str?
ResourcePoolStatusRequest: apiVersion=str kind=str metadata=ObjectMeta!* spec=ResourcePoolStatusRequestSpec!*
    status=ResourcePoolStatusRequestStatus
ResourcePoolStatusRequestSpec: defaultPartitionTypeAttribute=str? driver=str* limit=int32?/100 poolName=str?
ResourcePoolStatusRequestStatus: conditions={Condition:type}~ poolCount=int32?* pools=[PoolStatus]
ShareableCapacityStatus: available=Quantity* consumed=Quantity* name=str* total=Quantity*
ShareableSummaryStatus: capacity=[ShareableCapacityStatus] fullyAvailableDevices=int32?*
    partiallyAvailableDevices=int32?*
"""
_NUMBERS: Final = """\
PartitionTypeStatus: type total? allocatable? attribute
PoolStatus: driver poolName nodeName? totalDevices? allocatedDevices? availableDevices? unavailableDevices?
    resourceSliceCount? generation validationError? partitionSummary 13:shareableSummary
ResourcePoolStatusRequest: metadata spec status
ResourcePoolStatusRequestSpec: driver poolName? limit? defaultPartitionTypeAttribute?
ResourcePoolStatusRequestStatus: 2:pools conditions 6:poolCount?
ShareableCapacityStatus: name total consumed available
ShareableSummaryStatus: fullyAvailableDevices? partiallyAvailableDevices? capacity
"""
_TEXTS: Final = """\
ResourcePoolStatusRequest: A question about pools of devices.
ResourcePoolStatusRequestSpec.driver: Whose pools it is about.
ResourcePoolStatusRequestSpec.poolName: Which pool; all of the driver's where there is none.
ResourcePoolStatusRequestSpec.limit: How many pools to tell of at most.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.resource.v1alpha3", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META,)
)
_POOLS: Final = 100


class ResourcePoolStatusRequestStrategy(DocumentStrategy):
    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        content["spec"] = {"limit": _POOLS, **(content.get("spec") or {})}

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content.pop("status", None)

    def prepare_update(self, content: Document, old: Mapping[str, Any], write: Write) -> None:
        taken(content, old, "status")

    def updates_unconditionally(self, write: Write) -> bool:
        return False

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from rules.check(content["spec"])

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from rules.check_update(content["spec"], old.get("spec") or {})

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from rules.check_status(content.get("status"), old.get("status"))


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
    schemas={"v1alpha3": _PACKAGE.object("ResourcePoolStatusRequest")},
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
    strategy=ResourcePoolStatusRequestStrategy,
)
