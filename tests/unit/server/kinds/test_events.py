"""Events of both groups: stored once, shown in two shapes."""

from typing import Any

import pytest

from tests.unit.server.client import Client

CORE = "/api/v1/namespaces/default/events"
NEWER = "/apis/events.k8s.io/v1/namespaces/default/events"
MERGE = "application/merge-patch+json"
TIME = "2026-01-02T03:04:05.000006Z"
POD = {"kind": "Pod", "namespace": "default", "name": "p", "apiVersion": "v1"}


def newer(name: str = "e", **fields: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "eventTime": TIME,
        "reportingController": "example.com/me",
        "reportingInstance": "me-1",
        "action": "Look",
        "reason": "Seen",
        "regarding": POD,
        "note": "hello",
        "type": "Normal",
        **fields,
    }


def core(name: str = "e", **fields: Any) -> dict[str, Any]:
    source = {"component": "me", "host": "here"}
    first = {"firstTimestamp": "2026-01-02T03:04:00Z", "lastTimestamp": "2026-01-02T03:04:04Z", "count": 3}
    return {"metadata": {"name": name}, "involvedObject": POD, "reason": "Seen", "source": source, **first, **fields}


def content(document: dict[str, Any]) -> dict[str, Any]:
    return {field: value for field, value in document.items() if field != "metadata"}


async def test_the_newer_shape_is_stored_as_an_event_of_the_core_group(server: Client) -> None:
    created = await server.call("POST", NEWER, newer())
    assert created.code == 201
    assert content(created.body) == {
        **content(newer()),
        "kind": "Event",
        "apiVersion": "events.k8s.io/v1",
        "deprecatedSource": {},
        "deprecatedFirstTimestamp": None,
        "deprecatedLastTimestamp": None,
    }
    shown = await server.call("GET", f"{CORE}/e")
    assert content(shown.body) == {
        "kind": "Event",
        "apiVersion": "v1",
        "involvedObject": POD,
        "reason": "Seen",
        "message": "hello",
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "type": "Normal",
        "eventTime": TIME,
        "action": "Look",
        "reportingComponent": "example.com/me",
        "reportingInstance": "me-1",
    }
    assert shown.body["metadata"] == created.body["metadata"]


async def test_an_event_of_the_core_group_has_the_newer_shape(server: Client) -> None:
    await server.call("POST", CORE, core(message="hi"))
    (item,) = (await server.call("GET", NEWER)).body["items"]
    assert content(item) == {
        "eventTime": None,
        "reason": "Seen",
        "note": "hi",
        "regarding": POD,
        "deprecatedSource": {"component": "me", "host": "here"},
        "deprecatedFirstTimestamp": "2026-01-02T03:04:00Z",
        "deprecatedLastTimestamp": "2026-01-02T03:04:04Z",
        "deprecatedCount": 3,
    }


async def test_watches_of_both_groups_hear_of_both(server: Client) -> None:
    async with server.watch(f"{CORE}?watch=1") as old, server.watch(f"{NEWER}?watch=1") as new:
        await server.call("POST", CORE, core("a", message="x"))
        await server.call("POST", NEWER, newer("b"))
        for stream, field in ((old, "message"), (new, "note")):
            events = [await stream.event(), await stream.event()]
            assert [(each["object"]["metadata"]["name"], each["object"][field]) for each in events] == [
                ("a", "x"),
                ("b", "hello"),
            ]


async def test_selectors_have_the_names_of_their_group(server: Client) -> None:
    await server.call("POST", CORE, core("a"))
    await server.call("POST", NEWER, newer("b", regarding={**POD, "name": "q"}))
    selected = await server.call("GET", f"{NEWER}?fieldSelector=regarding.name=q,reportingController=example.com/me")
    assert [each["metadata"]["name"] for each in selected.body["items"]] == ["b"]
    refusal = await server.call("GET", f"{NEWER}?fieldSelector=involvedObject.name=q")
    assert (refusal.code, refusal.body["message"]) == (400, "field label not supported: involvedObject.name")


async def test_a_series_goes_on(server: Client) -> None:
    await server.call("POST", NEWER, newer())
    series = {"count": 2, "lastObservedTime": TIME}
    answer = await server.call("PATCH", f"{NEWER}/e", {"series": series}, content_type=MERGE)
    assert (answer.code, answer.body["series"]) == (200, series)
    assert (await server.call("GET", f"{CORE}/e")).body["series"] == series
    managers = [(each["apiVersion"], list(each["fieldsV1"])) for each in answer.body["metadata"]["managedFields"]]
    assert [version for version, _ in managers] == ["events.k8s.io/v1"]
    assert "f:regarding" in managers[0][1]


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param({"eventTime": None}, ["eventTime: Required value"], id="no-time"),
        pytest.param({"type": "Odd"}, ['type: Invalid value: "": has invalid value: Odd'], id="type"),
        pytest.param(
            {"reportingController": ""},
            ["reportingController: Required value", "reportingController: Invalid value"],
            id="nobody-reports",
        ),
        pytest.param(
            {"series": {"count": 1}}, ["series.count: Invalid", "series.lastObservedTime: Required"], id="series"
        ),
        pytest.param(
            {
                "deprecatedCount": 1,
                "deprecatedSource": {"component": "x"},
                "deprecatedFirstTimestamp": "2026-01-01T00:00:00Z",
            },
            [
                'firstTimestamp: Invalid value: "": needs to be unset',
                'count: Invalid value: "": needs to be unset',
                'source: Invalid value: "": needs to be unset',
            ],
            id="the-old-way",
        ),
        pytest.param({"metadata": {"name": "No Name"}}, ["metadata.name: Invalid value"], id="name"),
    ],
)
async def test_new_events_of_the_newer_group(server: Client, fields: dict[str, Any], want: list[str]) -> None:
    answer = await server.call("POST", NEWER, newer(**fields))
    assert answer.code == 422
    for part in want:
        assert part in answer.body["message"]


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param({"note": "other"}, 'message: Invalid value: "other": field is immutable', id="note"),
        pytest.param(
            {"regarding": {**POD, "name": "q"}},
            'involvedObject: Invalid value: {"Kind":"Pod","Namespace":"default","Name":"q","UID":"","APIVersion":"v1",'
            '"ResourceVersion":"","FieldPath":""}: field is immutable',
            id="regarding",
        ),
        pytest.param({"related": POD}, "related: Invalid value: {", id="related"),
        pytest.param({"deprecatedCount": 2}, "count: Invalid value: 2: field is immutable", id="count"),
        pytest.param({"reportingController": "example.com/you"}, "reportingController: Invalid value: ", id="reporter"),
    ],
)
async def test_what_an_event_says_stays(server: Client, fields: dict[str, Any], want: str) -> None:
    await server.call("POST", NEWER, newer())
    answer = await server.call("PATCH", f"{NEWER}/e", fields, content_type=MERGE)
    assert answer.code == 422
    assert want in answer.body["message"]
    by_core = await server.call("PATCH", f"{CORE}/e", {"message": "other"}, content_type=MERGE)
    assert by_core.code == 200


async def test_tables_are_alike(server: Client) -> None:
    await server.call("POST", NEWER, newer())
    tables = [
        (await server.call("GET", path, headers={"accept": "application/json;as=Table;g=meta.k8s.io;v=v1"})).body
        for path in (CORE, NEWER)
    ]
    assert tables[0]["rows"][0]["cells"] == tables[1]["rows"][0]["cells"]
    assert tables[0]["columnDefinitions"] == tables[1]["columnDefinitions"]


async def test_a_deletion_is_one(server: Client) -> None:
    await server.call("POST", CORE, core())
    assert (await server.call("DELETE", f"{NEWER}/e")).code == 200
    assert (await server.call("GET", f"{CORE}/e")).code == 404
    not_found = await server.call("GET", f"{NEWER}/e")
    assert not_found.body["message"] == 'events.events.k8s.io "e" not found'


def _fields(answer: Any) -> list[str]:
    return [cause["field"] for cause in answer.body["details"]["causes"]]


async def test_metadata_of_a_core_event_is_validated_after_its_fields(server: Client) -> None:
    elsewhere = {**POD, "namespace": "other"}
    nameless = await server.call("POST", CORE, core("", involvedObject=elsewhere))
    assert _fields(nameless) == ["involvedObject.namespace"]
    assert _fields(await server.call("POST", CORE, core(""))) == ["metadata.name"]


async def test_metadata_of_a_newer_event_is_validated_between_its_fields(server: Client) -> None:
    answer = await server.call("POST", NEWER, newer("", action="", type="Odd"))
    assert _fields(answer) == ["action", "metadata.name", "type"]
