"""Whole scheduling scenarios recorded on a real cluster, replayed in process on a clock that stands still."""

import copy
import itertools
import json
import re
from typing import Any

import pytest

from drachma.api import meta, pod, scheme
from drachma.api import resourceclaim as claims
from drachma.client import Selection, patches, target
from tests.conformance import vectors
from tests.scenarios import schedulers

CASES = vectors.lines("scheduling.jsonl")
NAMESPACE = "default"
STATUS_APART = ("Node", "ResourceClaim")


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in CASES if case["name"] != "quota"])
async def test_recorded(case: dict[str, Any]) -> None:
    answers: list[Any] = []
    async with schedulers.cluster() as world:
        for step in case["steps"]:
            for document in step.get("apply", ()):
                await _apply(world, document)
            for name in step.get("delete", ()):
                kind, _, name = name.partition("/")
                await world.client.delete(_kind(kind), name, namespace=NAMESPACE, grace_period_seconds=0)
            for name, phase in step.get("phase", {}).items():
                await world.client.patch(
                    pod.Pod,
                    name,
                    namespace=NAMESPACE,
                    subresource="status",
                    patch=patches.merge({"status": {"phase": phase}}),
                )
            # Whoever backs off is tried again within the time that the recording waited.
            await world.advance(3)
            if step.get("settle"):
                answers.append({"state": await _state(world)})
    wanted = json.loads(json.dumps(case["answers"]).replace("<ns>", NAMESPACE))
    nodes = [
        each["metadata"]["name"] for step in case["steps"] for each in step.get("apply", ()) if each["kind"] == "Node"
    ]
    assert any(_renamed(answers, nodes, order) == wanted for order in itertools.permutations(nodes)), (answers, wanted)


def _renamed(value: Any, nodes: list[str], order: tuple[str, ...]) -> Any:
    """With other names for nodes: which of two equal ones is taken is not part of the answer."""
    names = dict(zip(nodes, order, strict=True))
    if isinstance(value, dict):
        return {key: _renamed(item, nodes, order) for key, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, nodes, order) for item in value]
    return names.get(value, value) if isinstance(value, str) else value


def _kind(name: str) -> type[meta.Object]:
    return next(kind.model for kind in scheme.KINDS if kind.name == name)


async def _apply(world: schedulers.SchedulerWorld, given: dict[str, Any]) -> None:
    document = copy.deepcopy(given)
    kind = target.of(_kind(document["kind"]))
    status = document.pop("status", None) if document["kind"] in STATUS_APART else None
    if kind.namespaced:
        document["metadata"]["namespace"] = NAMESPACE
    made = await world.client.create_document(kind, document)
    if status is not None:
        await world.client.patch(
            kind,
            made["metadata"]["name"],
            namespace=NAMESPACE if kind.namespaced else "",
            subresource="status",
            patch=patches.merge({"status": status}),
        )


async def _state(world: schedulers.SchedulerWorld) -> dict[str, Any]:
    found: dict[str, Any] = {"pods": {}, "claims": {}}
    names: dict[str, str] = {}
    for known in (await world.client.list(pod.Pod, Selection(NAMESPACE))).items:
        document = await world.client.get_document(pod.Pod, known.metadata.name, namespace=NAMESPACE)
        names[known.metadata.uid] = known.metadata.name
        found["pods"][known.metadata.name] = _filled(_pod(document))
    for claim in (await world.client.list(claims.ResourceClaim, Selection(NAMESPACE))).items:
        document = await world.client.get_document(claims.ResourceClaim, claim.metadata.name, namespace=NAMESPACE)
        found["claims"][_starred(claim.metadata.name)] = _filled(_claim(document, names))
    return found


def _pod(document: dict[str, Any]) -> dict[str, Any]:
    status = document.get("status", {})
    scheduled = {entry["type"]: entry for entry in status.get("conditions", ())}.get("PodScheduled", {})
    allocatable = copy.deepcopy(status.get("nodeAllocatableResourceClaimStatuses"))
    for entry in allocatable or ():
        entry["resourceClaimName"] = _starred(entry["resourceClaimName"])
    return {
        "node": document["spec"].get("nodeName"),
        "scheduled": scheduled.get("status"),
        "reason": scheduled.get("reason"),
        "message": scheduled.get("message"),
        "deleting": "deletionTimestamp" in document["metadata"],
        "claims": {e["name"]: _starred(e["resourceClaimName"]) for e in status.get("resourceClaimStatuses", ())},
        "nodeAllocatable": allocatable,
    }


def _claim(document: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    status = document.get("status", {})
    allocation = copy.deepcopy(status.get("allocation"))
    if allocation:
        allocation.pop("allocationTimestamp", None)
        for result in allocation["devices"]["results"]:
            if "shareID" in result:
                result["shareID"] = "share"
    return {
        "allocation": allocation,
        "reservedFor": sorted(names.get(entry["uid"], "?") for entry in status.get("reservedFor", ())),
        "finalizers": document["metadata"].get("finalizers"),
        "deleting": "deletionTimestamp" in document["metadata"],
    }


def _filled(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if value not in (None, {}, [], False)}


def _starred(name: str) -> str:
    return re.sub(r"-[a-z0-9]{5}$", "-*****", name)
