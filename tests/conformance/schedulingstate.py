"""What became of pods and claims, in the form in which the scheduling scenarios were recorded."""

import copy
import re
from typing import Any

Document = dict[str, Any]

_EMPTY: tuple[Any, ...] = (None, {}, [], False)


def state(pods: list[Document], claims: list[Document]) -> Document:
    """The recorded form of all pods and claims of a namespace; whatever is generated or volatile is replaced."""
    names = {each["metadata"]["uid"]: each["metadata"]["name"] for each in pods}
    return {
        "pods": {_pod_name(each): _filled(_pod(each)) for each in pods},
        "claims": {_starred(each["metadata"]["name"]): _filled(_claim(each, names)) for each in claims},
    }


def _pod_name(document: Document) -> str:
    owners = document["metadata"].get("ownerReferences", ())
    name: str = document["metadata"]["name"]
    return _starred(name) if any(each.get("kind") == "Job" for each in owners) else name


def _pod(document: Document) -> Document:
    status = document.get("status", {})
    scheduled = {each["type"]: each for each in status.get("conditions", ())}.get("PodScheduled", {})
    allocatable = copy.deepcopy(status.get("nodeAllocatableResourceClaimStatuses"))
    for entry in allocatable or ():
        entry["resourceClaimName"] = _starred(entry["resourceClaimName"])
    claims = status.get("resourceClaimStatuses", ())
    return {
        "node": document["spec"].get("nodeName"),
        "scheduled": scheduled.get("status"),
        "reason": scheduled.get("reason"),
        "message": scheduled.get("message"),
        "deleting": "deletionTimestamp" in document["metadata"],
        "claims": {each["name"]: _starred(each.get("resourceClaimName", "")) for each in claims},
        "nodeAllocatable": allocatable,
    }


def _claim(document: Document, names: dict[str, str]) -> Document:
    status = document.get("status", {})
    allocation = copy.deepcopy(status.get("allocation"))
    if allocation:
        allocation.pop("allocationTimestamp", None)
        for result in allocation.get("devices", {}).get("results", ()):
            if result.get("shareID"):
                result["shareID"] = "share"
    return {
        "allocation": allocation,
        "reservedFor": sorted(names.get(each["uid"], "?") for each in status.get("reservedFor", ())),
        "finalizers": document["metadata"].get("finalizers"),
        "deleting": "deletionTimestamp" in document["metadata"],
    }


def _filled(record: Document) -> Document:
    return {key: value for key, value in record.items() if value not in _EMPTY}


def _starred(name: str) -> str:
    return re.sub(r"-[a-z0-9]{5}$", "-*****", name)
