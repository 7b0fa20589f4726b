"""The same recordings as those of Kueue's definitions, against the kinds that the server has without definitions."""

import re
from typing import Any

from drachma.server.kinds.kueue import queuekinds
from drachma.server.wire import app
from tests.conformance import vectors
from tests.conformance.vectors import Line
from tests.unit.server import client

_NAMESPACED = {"LocalQueue", "Workload"}
_KINDS = queuekinds.kinds()
_PLURALS = {each.kind: each.plural for each in _KINDS}


@vectors.each("kueue-crd")
async def test_kueue_crd_served(case: Line) -> None:
    server = await client.start(additions=app.Additions(kinds=_KINDS))
    recorded = case["input"]
    path = _path(recorded["object"])
    if case["test"] == "create":
        given = await server.call("POST", path, recorded["object"])
    else:
        given = await _update(server, path, recorded)

    _compare(given, case["answer"])


def _is_definition(line: Line) -> bool:
    return str(line["kind"]).startswith("crd-")


@vectors.each("kueue-tas-webhooks", where=_is_definition)
async def test_kueue_tas_webhooks_served(case: Line) -> None:
    server = await client.start(additions=app.Additions(kinds=_KINDS))
    recorded, answer = case["input"], case["answer"]
    path = _path(recorded["object"])
    if case["test"] == "create":
        given = await server.call("POST", path, recorded["object"])
        if given.code == 201 and recorded["object"]["kind"] == "Workload" and "status" in recorded["object"]:
            written = {**given.body, "status": recorded["object"]["status"]}
            given = await server.call("PUT", f"{path}/{written['metadata']['name']}/status", written)
            answer = _answer_to_status(answer)
    else:
        given = await _update(server, path, recorded)

    _compare(given, answer)


def _answer_to_status(answer: Line) -> Line:
    """Return the answer to a write of the status from that to the whole object, which spells paths in full."""
    if answer["code"] == 201:
        return {**answer, "code": 200}
    causes = [{**each, "message": _without_status(each["message"])} for each in answer["causes"]]
    return {**answer, "message": _without_status(answer["message"]), "causes": causes}


def _without_status(message: str) -> str:
    return re.sub(r"status\.(\S+ in body)", r"\1", message)


def _compare(given: client.Answer, answer: Line) -> None:
    assert given.code == answer["code"], given.body
    if answer["code"] < 300:
        assert _content(given.body) == _content(answer["object"])
        return
    assert given.body["reason"] == answer["reason"]
    causes = given.body["details"].get("causes", [])
    if len(causes) == 1:
        assert given.body["message"] == answer["message"]
    assert _texts(causes) == _texts(answer.get("causes", []))


async def _update(server: client.Client, path: str, recorded: Line) -> client.Answer:
    made = await server.call("POST", path, recorded["oldObject"])
    assert made.code == 201, made.body
    place = f"{path}/{made.body['metadata']['name']}"
    if "status" in recorded:
        made = await server.call("PUT", f"{place}/status", {**made.body, "status": recorded["status"]})
        assert made.code == 200, made.body
    metadata = {**recorded["object"]["metadata"], "resourceVersion": made.body["metadata"]["resourceVersion"]}
    return await server.call("PUT", place, {**recorded["object"], "metadata": metadata})


def _path(document: Line) -> str:
    place = "namespaces/default/" if document["kind"] in _NAMESPACED else ""
    return f"/apis/{document['apiVersion']}/{place}{_PLURALS[document['kind']]}"


def _content(document: Any) -> Any:
    return {name: value for name, value in document.items() if name != "metadata" and value != {}}


def _texts(causes: Any) -> list[tuple[str, str, str]]:
    return sorted((each["reason"], each["field"], each["message"]) for each in causes)
