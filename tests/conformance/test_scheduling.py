"""Whole scheduling scenarios recorded on a real cluster, replayed on the embedded control plane, in process."""

import copy
import itertools
import json
from typing import Any

from drachma import errors
from drachma.api import meta, pod, resourceclaim
from drachma.client import Selection, patches, target
from tests.conformance import schedulingstate, vectors
from tests.scenarios import controlplane

NAMESPACE = "default"
STATUS_APART = ("Node", "ResourceClaim", "ResourceQuota")
QUIET_SECONDS = 3.0
"""How long nothing changed before a state was recorded: whoever backs off is tried again meanwhile."""

Document = dict[str, Any]


@vectors.each("scheduling")
async def test_scheduling(case: Document) -> None:
    async with controlplane.control_plane() as plane:
        resources = {each.kind: each for each in await plane.client.resources()}
        answers: list[Document] = []
        for step in case["steps"]:
            for document in step.get("apply", ()):
                answers += await _apply(plane, resources, document)
            for name in step.get("delete", ()):
                kind, _, name = name.partition("/")
                await plane.delete(resources[kind], name)
            for name, phase in step.get("phase", {}).items():
                await plane.patch_status(await plane.pod(name), {"phase": phase})
            await plane.advance(step.get("wait", 0))
            if step.get("settle"):
                await plane.advance(QUIET_SECONDS)
                answers.append({"state": await _state(plane)})
    assert_same(answers, json.loads(json.dumps(case["answers"]).replace("<ns>", NAMESPACE)), case)


async def _apply(
    plane: controlplane.ControlPlane, resources: dict[str, target.Target[meta.Object]], given: Document
) -> list[Document]:
    """Creates an object; the answer if it is refused."""
    document = copy.deepcopy(given)
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
    if status is not None:
        patch = patches.merge({"status": status})
        await plane.client.patch(kind, made["metadata"]["name"], patch=patch, namespace=place, subresource="status")
    return []


async def _state(plane: controlplane.ControlPlane) -> Document:
    async def documents(kind: target.Of[Any]) -> list[Document]:
        found = (await plane.client.list(kind, Selection(NAMESPACE))).items
        return [await plane.client.get_document(kind, e.metadata.name, namespace=NAMESPACE) for e in found]

    return schedulingstate.state(await documents(pod.Pod), await documents(resourceclaim.ResourceClaim))


def assert_same(answers: list[Document], wanted: list[Document], case: Document) -> None:
    """Equal, but for which of several nodes was chosen that are the same but for their names."""
    names = [each["metadata"]["name"] for each in _applied(case, "Node")]
    renamings = [dict(zip(names, order, strict=True)) for order in itertools.permutations(names)]
    allowed = [renaming for renaming in renamings if _cluster(case, renaming) == _cluster(case, {})]
    if not any(_renamed(answers, renaming) == wanted for renaming in allowed):
        assert answers == wanted


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
