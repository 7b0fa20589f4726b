"""Runs of the recorded scheduling scenarios, on any control plane."""

import copy
import itertools
import json
from typing import Any

from drachma import errors
from drachma.api import meta, pod, resourceclaim
from drachma.client import Selection, patches, target
from tests.conformance import scenariorun, schedulingstate

NAMESPACE = "default"
STATUS_APART = ("Node", "ResourceClaim", "ResourceQuota")
QUIET_SECONDS = 3.0
"""Time without a change before a state was recorded; pods that back off are tried again meanwhile."""

Document = dict[str, Any]


async def run(plane: scenariorun.Plane, case: Document) -> list[Document]:
    """Return the answers of a scenario in the recorded form."""
    resources = {each.kind: each for each in await plane.client.resources()}
    answers: list[Document] = []
    for step in case["steps"]:
        for document in step.get("apply", ()):
            answers += await _apply(plane, resources, document)
        for text in step.get("delete", ()):
            kind, _, name = text.partition("/")
            place = NAMESPACE if resources[kind].namespaced else ""
            await plane.client.delete(resources[kind], name, namespace=place, grace_period_seconds=0)
            await plane.settle()
        for name, phase in step.get("phase", {}).items():
            patch = patches.merge({"status": {"phase": phase}})
            await plane.client.patch(pod.Pod, name, patch=patch, namespace=NAMESPACE, subresource="status")
            await plane.settle()
        await plane.advance(step.get("wait", 0))
        if step.get("settle"):
            await plane.advance(QUIET_SECONDS)
            answers.append({"state": await _state(plane)})
    return answers


async def _apply(
    plane: scenariorun.Plane, resources: dict[str, target.Target[meta.Object]], recorded: Document
) -> list[Document]:
    """Create an object; return the answer if it is refused."""
    document = copy.deepcopy(recorded)
    kind = resources[document["kind"]]
    status = document.pop("status", None) if document["kind"] in STATUS_APART else None
    place = NAMESPACE if kind.namespaced else ""
    if place:
        document["metadata"]["namespace"] = place
    try:
        made = await plane.client.create_document(kind, document)
    except errors.RefusedError as error:
        name = f"{document['kind']}/{document['metadata'].get('name', '')}"
        return [{"refused": name, "code": error.code, "message": str(error)}]
    if document["kind"] == "Node":
        # New nodes get a taint that no component removes without a kubelet.
        taints = patches.merge({"spec": {"taints": document.get("spec", {}).get("taints")}})
        await plane.client.patch(kind, made["metadata"]["name"], patch=taints)
    if status is not None:
        patch = patches.merge({"status": status})
        await plane.client.patch(kind, made["metadata"]["name"], patch=patch, namespace=place, subresource="status")
    return []


async def _state(plane: scenariorun.Plane) -> Document:
    async def documents(kind: target.Of[Any]) -> list[Document]:
        found = (await plane.client.list(kind, Selection(NAMESPACE))).items
        return [await plane.client.get_document(kind, e.metadata.name, namespace=NAMESPACE) for e in found]

    return schedulingstate.state(await documents(pod.Pod), await documents(resourceclaim.ResourceClaim))


def assert_same(answers: list[Document], case: Document) -> None:
    """Fail if answers are not the recorded ones; nodes that differ in nothing but their names may change places."""
    wanted = json.loads(json.dumps(case["answers"]).replace("<ns>", NAMESPACE))
    names = [each["metadata"]["name"] for each in _applied(case, "Node")]
    renamings = [dict(zip(names, order, strict=True)) for order in itertools.permutations(names)]
    allowed = [renaming for renaming in renamings if _cluster(case, renaming) == _cluster(case, {})]
    if not any(_renamed(answers, renaming) == wanted for renaming in allowed):
        raise AssertionError(scenariorun.first_difference(wanted, answers))


def _cluster(case: Document, names: dict[str, str]) -> list[str]:
    """Nodes under other names and their slices, whose own names mean nothing, in no particular order."""
    slices = [{**each, "metadata": {**each["metadata"], "name": ""}} for each in _applied(case, "ResourceSlice")]
    return sorted(json.dumps(_renamed(each, names), sort_keys=True) for each in (*slices, *_applied(case, "Node")))


def _applied(case: Document, kind: str) -> list[Document]:
    return [each for step in case["steps"] for each in step.get("apply", ()) if each["kind"] == kind]


def _renamed(value: Any, names: dict[str, str]) -> Any:
    """With other names for nodes."""
    if isinstance(value, dict):
        return {key: _renamed(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, names) for item in value]
    return names.get(value, value) if isinstance(value, str) else value
