"""Laws of the API server: watchers and lists agree, pages make the whole, selectors only look."""

import asyncio
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from drachma.server.calls import options
from drachma.server.reads import selection
from drachma.server.surface import fieldselector
from drachma.store import record
from drachma.values import label_syntax
from tests.unit.server import client, served
from tests.unit.server.client import PODS

NAMES = st.sampled_from(["a", "b", "c", "d"])
LABELS = st.dictionaries(st.sampled_from(["x", "y"]), st.sampled_from(["1", "2"]), max_size=2)
ACTS = st.lists(st.tuples(st.sampled_from(["create", "label", "delete"]), NAMES, LABELS), max_size=12)
SELECTORS = st.sampled_from(["", "x", "x=1", "x!=1", "!x", "x in (1,2),y", "y notin (2)"])

POD_RESOURCE = served.CATALOG.find("", "v1", plural="pods")
assert POD_RESOURCE is not None


@settings(max_examples=40)
@given(before=ACTS, after=ACTS, selector=SELECTORS)
def test_a_watcher_ends_up_with_the_list(before: Any, after: Any, selector: str) -> None:
    async def run() -> None:
        server = await client.start()
        for act in before:
            await _act(server, *act)
        query = f"labelSelector={selector}"
        listed = (await server.call("GET", f"{PODS}?{query}")).body
        state = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in listed["items"]}
        version = listed["metadata"]["resourceVersion"]
        async with server.watch(f"{PODS}?watch=1&resourceVersion={version}&{query}") as stream:
            for act in after:
                await _act(server, *act)
            # The last event says that all others have come.
            await server.call("POST", PODS, client.pod("zz-last", labels={"x": "1", "y": "1"}))
            final = (await server.call("GET", f"{PODS}?{query}")).body
            want = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in final["items"]}
            while state != want:
                event = await stream.event()
                name = event["object"]["metadata"]["name"]
                if event["type"] == "DELETED":
                    assert name in state
                    del state[name]
                else:
                    assert (event["type"] == "ADDED") is (name not in state)
                    state[name] = event["object"]["metadata"]["resourceVersion"]

    asyncio.run(run())


@settings(max_examples=30)
@given(acts=ACTS, limit=st.integers(1, 4), selector=SELECTORS)
def test_pages_make_the_whole(acts: Any, limit: int, selector: str) -> None:
    async def run() -> None:
        server = await client.start()
        for act in acts:
            await _act(server, *act)
        whole = (await server.call("GET", f"{PODS}?labelSelector={selector}")).body["items"]
        parts: list[Any] = []
        token = ""
        while True:
            page = (await server.call("GET", f"{PODS}?labelSelector={selector}&limit={limit}&continue={token}")).body
            parts += page["items"]
            token = page["metadata"].get("continue", "")
            if not token:
                break
            assert len(page["items"]) == limit
        assert parts == whole

    asyncio.run(run())


@given(
    labels=LABELS,
    node=st.sampled_from(["", "n1", "n2"]),
    phase=st.sampled_from(["Pending", "Running"]),
    selector=SELECTORS,
    fields=st.sampled_from(["", "spec.nodeName=n1", "spec.nodeName=", "status.phase!=Running", "metadata.name=p"]),
)
def test_a_look_at_the_text_changes_no_verdict(
    labels: dict[str, str], node: str, phase: str, selector: str, fields: str
) -> None:
    assert POD_RESOURCE is not None
    document = {
        "metadata": {"name": "p", "labels": labels},
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": phase},
    }
    data = json.dumps(document, separators=(",", ":")).encode()
    stored = record.Record(record.Key("pods", "default", "p"), "u", 1, 1, data)
    wanted = options.ListOptions(
        labels=label_syntax.parse(selector), fields=fieldselector.parse(fields, POD_RESOURCE, version="v1")
    )
    matches = selection.matcher(wanted)
    want = wanted.labels.matches(labels) and wanted.fields.matches(document)
    assert (matches is None or matches(stored)) is want


async def _act(server: client.Client, act: str, name: str, labels: dict[str, str]) -> None:
    if act == "create":
        await server.call("POST", PODS, client.pod(name, labels=labels))
    elif act == "delete":
        await server.call("DELETE", f"{PODS}/{name}")
    else:
        patch = [{"op": "add", "path": "/metadata/labels", "value": labels}]
        await server.call("PATCH", f"{PODS}/{name}", patch, content_type="application/json-patch+json")
