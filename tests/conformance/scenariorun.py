"""Runs of recorded scenarios about groups, features together and disruption, on any control plane."""

import copy
import datetime as dt
import itertools
import json
import re
from collections.abc import Iterator
from typing import Any, Protocol

import msgspec
from msgspec import structs

from drachma import errors
from drachma.api import event, gates, meta
from drachma.client import Client, Selection, patches, target
from tests.conformance import scenariostate

Document = dict[str, Any]

GATES = gates.ALL.switched({"GenericWorkload": True, "DRAWorkloadResourceClaims": True, "NodeDeclaredFeatures": True})
"""Gates of all recordings; a scenario may switch more of them."""
_STATUS_APART = ("Node", "ResourceQuota", "ResourceClaim", "PodGroup")
_ACCOUNT = ("serviceAccountName", "serviceAccount")
"""Fields of pods that drachma fills in even without the ServiceAccount plugin, which was off in the recording."""
_QUIET_SECONDS = 2.5
_LIMIT_SECONDS = 25.0
_PATCH_TYPES = {"merge": patches.MERGE, "json": patches.JSON, "strategic": patches.STRATEGIC}


class Plane(Protocol):
    """Control plane that a scenario runs on, and its time."""

    @property
    def client(self) -> Client: ...

    def now(self) -> dt.datetime:
        """Return the time on the control plane's clock."""

    async def settle(self) -> None:
        """Wait until nothing is under way, if that can be known."""

    async def advance(self, seconds: float) -> None:
        """Let time pass."""


class OrderedPlane(Plane, Protocol):
    """Control plane whose controllers work concurrently, so that it has to wait for what later steps rely on."""

    async def follow(self, created: Document) -> None:
        """Wait until the claims of a new pod are generated, or will not be."""


async def run(plane: Plane, case: Document, *, ordered: OrderedPlane | None = None) -> list[Document]:
    """Return the answers of a scenario in the recorded form; ``ordered`` is the plane, if it must wait for order."""
    scenario = _Run(plane, {each.kind: each for each in reversed(await plane.client.resources())}, ordered)
    await scenario.create_namespace(case.get("labels", {}))
    for step in case["steps"]:
        await scenario.step(step)
    return scenario.answers


def difference(case: Document, answers: list[Document]) -> str | None:
    """Return the first difference from the recorded answers, or None; nodes that are equal may change places."""
    problem = first_difference(case["answers"], answers)
    if problem and any(first_difference(case["answers"], renamed) is None for renamed in _renamings(answers, case)):
        return None
    return problem


class _Run:
    """One scenario on one control plane."""

    def __init__(
        self, plane: Plane, kinds: dict[str, target.Target[meta.Object]], ordered: OrderedPlane | None
    ) -> None:
        self._plane = plane
        self._ordered = ordered
        self._kinds = kinds
        self.answers: list[Document] = []

    async def create_namespace(self, labels: dict[str, str]) -> None:
        metadata = {"name": scenariostate.NAMESPACE, "labels": labels}
        await self._plane.client.create_document(self._kinds["Namespace"], {"metadata": metadata})

    async def step(self, step: Document) -> None:
        for document in step.get("apply", ()):
            await self._apply(document)
        for patch in step.get("patch", ()):
            await self._patch(patch)
        for text in step.get("delete", ()):
            await self._delete(text, step)
        for name, phase in step.get("phase", {}).items():
            patch = patches.merge({"status": {"phase": phase}})
            await self._send_patch("Pod", name, patch, subresource="status")
        await self._plane.settle()
        await self._plane.advance(step.get("wait", 0))
        for text in step.get("get", ()):
            self.answers.append(await self._get(text))
        if step.get("settle"):
            quiet = _QUIET_SECONDS if step["settle"] is True else float(step["settle"])
            self.answers.append({"state": await self._settle(quiet, step.get("events", ()))})

    # Steps

    async def _apply(self, document: Document) -> None:
        new = await self._fill(copy.deepcopy(document))
        name = new["kind"]
        kind = self._kinds.get(name)
        if kind is None:
            raise AssertionError(f"kind {name} is not served")
        kind = structs.replace(kind, versions=(new["apiVersion"].rpartition("/")[2],))
        status = new.pop("status", None) if name in _STATUS_APART else None
        if kind.namespaced:
            new["metadata"]["namespace"] = scenariostate.NAMESPACE
        try:
            created = await self._plane.client.create_document(kind, new)
        except errors.RefusedError as error:
            await self._refuse(f"{name}/{new['metadata'].get('name', '')}", error)
            return
        if name == "Pod" and self._ordered is not None:
            await self._ordered.follow(created)
        if name == "Node":
            taints = patches.merge({"spec": {"taints": new.get("spec", {}).get("taints")}})
            await self._send_patch(name, created["metadata"]["name"], taints)
        if status is not None:
            title = f"{name}/{created['metadata']['name']}"
            try:
                patch = patches.merge({"status": status})
                await self._send_patch(name, created["metadata"]["name"], patch, subresource="status")
            except errors.RefusedError as error:
                await self._refuse(f"{title} status", error)

    async def _patch(self, step: Document) -> None:
        kind, name = await self._find(step["object"])
        subresource = step.get("subresource", "")
        content = msgspec.json.encode(await self._fill(step["patch"]))
        media_type = _PATCH_TYPES[step.get("type", "merge")]
        patch = patches.Patch(media_type=media_type, data=content, touches_spec=True, is_idempotent=False)
        try:
            await self._send_patch(kind, name, patch, subresource=subresource)
        except errors.RefusedError as error:
            await self._refuse(step["object"] + (f" {subresource}" if subresource else ""), error)

    async def _send_patch(self, kind: str, name: str, patch: patches.Patch, subresource: str = "") -> None:
        await self._plane.client.patch_document(
            self._kinds[kind], name, patch=patch, namespace=self._namespace(kind), subresource=subresource
        )

    async def _delete(self, text: str, step: Document) -> None:
        kind, name = await self._find(text)
        try:
            await self._plane.client.delete(
                self._kinds[kind],
                name,
                namespace=self._namespace(kind),
                grace_period_seconds=step.get("grace", 0),
                propagation=step.get("propagation"),
            )
        except errors.RefusedError as error:
            await self._refuse(f"delete {text}", error)

    async def _get(self, text: str) -> Document:
        kind, name = await self._find(text)
        try:
            document = await self._plane.client.get_document(self._kinds[kind], name, namespace=self._namespace(kind))
            body = scenariostate.without_volatile_fields(document)
            for field in _ACCOUNT if kind == "Pod" else ():
                body["spec"].pop(field, None)
        except errors.RefusedError as error:
            body = {"code": error.code, "message": str(error)}
        claims = await self._documents("ResourceClaim")
        answer: Document = scenariostate.Names((), claims).tidy({"object": text, "body": body})
        return answer

    async def _settle(self, quiet: float, reasons: list[str]) -> Document:
        passed, last = 0.0, None
        while passed < _LIMIT_SECONDS + quiet:
            await self._plane.advance(quiet)
            passed += quiet
            current = await self._state()
            if current == last:
                break
            last = current
        return await self._state(reasons)

    # Objects

    async def _find(self, text: str) -> tuple[str, str]:
        """Return kind and name of an object; ``Claim:p/g`` is the claim of pod or group p for its entry g."""
        kind, _, name = text.partition("/")
        if not kind.startswith("Claim:"):
            return kind, name
        holder = kind.removeprefix("Claim:")
        for holder_kind in ("Pod", "PodGroup"):
            for each in await self._documents(holder_kind):
                status = each.get("status", {})
                if each["metadata"]["name"] != holder:
                    continue
                if not name:
                    return "ResourceClaim", status.get("extendedResourceClaimStatus", {}).get(
                        "resourceClaimName", "none"
                    )
                for entry in status.get("resourceClaimStatuses") or ():
                    if entry["name"] == name:
                        return "ResourceClaim", entry.get("resourceClaimName")
        return "ResourceClaim", "none"

    async def _fill(self, value: Any) -> Any:
        """Return a document with its placeholders replaced."""
        if isinstance(value, dict):
            return {key: await self._fill(item) for key, item in value.items()}
        if isinstance(value, list):
            return [await self._fill(item) for item in value]
        if not isinstance(value, str) or "${" not in value:
            return value
        await self._plane.settle()
        for match in re.finditer(r"\$\{uid:(\w+)/([^}]+)\}", value):
            uids = {each["metadata"]["name"]: each["metadata"]["uid"] for each in await self._documents(match[1])}
            value = value.replace(match[0], uids.get(match[2], "none"))
        for match in re.finditer(r"\$\{name:\w+/([^}/]+)/([^}]*)\}", value):
            value = value.replace(match[0], (await self._find(f"Claim:{match[1]}/{match[2]}"))[1])
        for match in re.finditer(r"\$\{now(-\d+)?\}", value):
            moment = self._plane.now() + dt.timedelta(seconds=int(match[1] or 0))
            value = value.replace(match[0], moment.strftime("%Y-%m-%dT%H:%M:%SZ"))
        return value

    async def _documents(self, kind: str) -> list[Document]:
        served = self._kinds.get(kind)
        if served is None:
            return []
        objects = (await self._plane.client.list(served, Selection(self._namespace(kind)))).items
        return [
            await self._plane.client.get_document(served, each.metadata.name, namespace=each.metadata.namespace)
            for each in objects
        ]

    async def _objects(self) -> dict[str, list[Document]]:
        return {kind: await self._documents(kind) for kind in scenariostate.KINDS}

    async def _state(self, reasons: list[str] | None = None) -> Document:
        objects = await self._objects()
        if not reasons:
            return scenariostate.state(objects)
        events = [
            await self._plane.client.get_document(event.Event, each.metadata.name, namespace=each.metadata.namespace)
            for each in (await self._plane.client.list(event.Event)).items
        ]
        return scenariostate.state(objects, events, reasons)

    async def _refuse(self, subject: str, error: errors.RefusedError) -> None:
        names = scenariostate.names(await self._objects())
        self.answers.append(names.tidy({"refused": subject, "code": error.code, "message": str(error)}))

    def _namespace(self, kind: str) -> str:
        return scenariostate.NAMESPACE if self._kinds[kind].namespaced else ""


def first_difference(expected: Any, actual: Any, where: str = "") -> str | None:
    """Return the first difference between two JSON values as text, or None."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in sorted(expected.keys() | actual.keys()):
            if key not in actual:
                return f"{where}/{key}: expected {json.dumps(expected[key])}, absent"
            if key not in expected:
                return f"{where}/{key}: not expected, got {json.dumps(actual[key])}"
            if difference := first_difference(expected[key], actual[key], f"{where}/{key}"):
                return difference
        return None
    if isinstance(expected, list) and isinstance(actual, list):
        for number, (one, other) in enumerate(zip(expected, actual, strict=False)):
            if difference := first_difference(one, other, f"{where}/{number}"):
                return difference
        if len(expected) != len(actual):
            rest = (expected if len(expected) > len(actual) else actual)[min(len(expected), len(actual)) :]
            return f"{where}: expected {len(expected)} items, got {len(actual)}: {json.dumps(rest)}"
        return None
    return None if expected == actual else f"{where}: expected {json.dumps(expected)}, got {json.dumps(actual)}"


def _renamings(answers: list[Document], case: Document) -> Iterator[list[Document]]:
    """Yield the answers with other names for nodes that differ in nothing but their names."""
    nodes = [each for step in case["steps"] for each in step.get("apply", ()) if each["kind"] == "Node"]
    names = [each["metadata"]["name"] for each in nodes]
    cluster = _cluster(case, {})
    for order in itertools.permutations(names):
        renaming = dict(zip(names, order, strict=True))
        if _cluster(case, renaming) == cluster:
            yield _renamed(answers, renaming)


def _cluster(case: Document, names: dict[str, str]) -> list[str]:
    documents = [
        {**each, "metadata": {**each["metadata"], "name": ""}} if each["kind"] == "ResourceSlice" else each
        for step in case["steps"]
        for each in step.get("apply", ())
    ]
    return sorted(json.dumps(_renamed(each, names), sort_keys=True) for each in documents)


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {names.get(key, key): _renamed(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, names) for item in value]
    return names.get(value, value) if isinstance(value, str) else value
