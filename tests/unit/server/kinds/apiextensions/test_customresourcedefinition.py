"""Definitions as clients see them: names, conditions, versions, and what is refused."""

import asyncio
from typing import Any

import pytest

from tests.unit.server import client
from tests.unit.server.client import Client
from tests.unit.server.kinds.apiextensions import widgets
from tests.unit.server.kinds.apiextensions.widgets import DEFINITION, DEFINITIONS, MERGE


def _conditions(body: Any) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["reason"]) for each in body["status"]["conditions"]}


async def test_a_kind_is_served_as_soon_as_its_definition_is_made(server: Client) -> None:
    assert (await server.call("GET", widgets.path())).code == 404
    created = await server.call("POST", DEFINITIONS, widgets.definition())
    assert created.code == 201
    assert created.body["status"] == {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": ["v1"],
    }
    assert (await server.call("GET", widgets.path())).body["kind"] == "WidgetList"
    read_back = (await server.call("GET", DEFINITION)).body
    assert _conditions(read_back) == {
        "NamesAccepted": ("True", "NoConflicts"),
        "Established": ("True", "InitialNamesAccepted"),
    }
    assert read_back["status"]["acceptedNames"] == {
        "plural": "widgets",
        "singular": "widget",
        "kind": "Widget",
        "listKind": "WidgetList",
    }


async def test_names_belong_to_who_had_them_first(server: Client) -> None:
    await server.call("POST", DEFINITIONS, widgets.definition(names={"shortNames": ["w"]}))
    other = widgets.definition(names={"plural": "gadgets", "kind": "Widget", "shortNames": ["w"], "singular": "g"})
    other["metadata"]["name"] = f"gadgets.{widgets.GROUP}"
    await server.call("POST", DEFINITIONS, other)
    path = f"{DEFINITIONS}/gadgets.{widgets.GROUP}"
    rejected = (await server.call("GET", path)).body
    assert _conditions(rejected)["NamesAccepted"] == ("False", "ListKindConflict")
    assert _conditions(rejected)["Established"] == ("False", "NotAccepted")
    assert (await server.call("DELETE", DEFINITION)).code == 200
    await server.app.definitions.idle()
    assert (await server.call("GET", DEFINITION)).code == 404
    assert _conditions((await server.call("GET", path)).body)["Established"][0] == "True"


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        pytest.param(
            {"versions": [widgets.version("v1"), widgets.version("v2")]},
            "must have exactly one version marked as storage version",
            id="two-stored-versions",
        ),
        pytest.param(
            {"versions": [widgets.version(spec={"properties": {"x": {"type": "string"}}})]},
            "spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified "
            "object fields",
            id="not-structural",
        ),
        pytest.param(
            {"versions": [widgets.version(), widgets.version("v2", storage=False, spec={"type": "nothing"})]},
            'spec.versions[1].schema.openAPIV3Schema.properties[spec].type: Unsupported value: "nothing": supported '
            'values: "array", "boolean", "integer", "number", "object", "string"',
            id="schemas-of-versions",
        ),
        pytest.param(
            {"versions": [widgets.version(spec=widgets.fields(a={"type": "integer", "default": "x"}))]},
            'spec.validation.openAPIV3Schema.properties[spec].properties[a].default: Invalid value: "string": '
            " in body must be of type integer",
            id="default-of-another-type",
        ),
        pytest.param(
            {
                "versions": [
                    widgets.version(
                        spec=widgets.fields(
                            a={
                                "type": "array",
                                "items": {"type": "string"},
                                "x-kubernetes-validations": [{"rule": "self.all(x, self.exists(y, x + y == x))"}],
                            }
                        )
                    )
                ]
            },
            "estimated rule cost exceeds budget by factor of more than 100x",
            id="costly-rule",
        ),
        pytest.param(
            {"versions": [widgets.version(additionalPrinterColumns=[{"name": "A", "type": "odd", "jsonPath": ".a"}])]},
            'spec.additionalPrinterColumns[0].type: Invalid value: "odd": must be one of '
            "boolean,date,integer,number,string",
            id="column",
        ),
        pytest.param(
            {"versions": [widgets.version(selectableFields=[{"jsonPath": ".metadata.name"}])]},
            'spec.selectableFields[0].jsonPath: Invalid value: ".metadata.name": is an invalid path: does not refer to '
            "a valid field",
            id="selectable-field",
        ),
        pytest.param(
            {
                "versions": [
                    widgets.version(subresources={"scale": {"specReplicasPath": ".x", "statusReplicasPath": ""}})
                ]
            },
            "spec.subresources.scale.statusReplicasPath: Required value",
            id="scale",
        ),
        pytest.param(
            {"conversion": {"strategy": "Webhook"}},
            "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
            id="conversion-without-webhook",
        ),
        pytest.param(
            {"versions": [widgets.version(deprecationWarning="old")]},
            'spec.versions[0].deprecationWarning: Invalid value: "old": can only be set for deprecated versions',
            id="deprecation-warning",
        ),
    ],
)
async def test_refused(server: Client, changes: dict[str, Any], want: str) -> None:
    given = widgets.definition()
    given["spec"].update(changes)
    refusal = await server.call("POST", DEFINITIONS, given)
    assert refusal.code == 422
    assert want in refusal.body["message"]


async def test_absent_names_are_reported_once(server: Client) -> None:
    document = widgets.definition()
    del document["metadata"]["name"]
    refused = await server.call("POST", widgets.DEFINITIONS, document)
    assert [each["message"] for each in refused.body["details"]["causes"]] == [
        "Required value: name or generateName is required"
    ]
    document = widgets.definition()
    del document["spec"]["versions"][0]["name"]
    refused = await server.call("POST", widgets.DEFINITIONS, document)
    assert "spec.version" not in [each["field"] for each in refused.body["details"]["causes"]]


async def test_wrong_types_below_items_are_refused_as_elsewhere(server: Client) -> None:
    items = {"type": "object", "properties": {"k": True}}
    document = widgets.definition(widgets.version(spec=widgets.fields(list={"type": "array", "items": items})))
    refused = await server.call("POST", widgets.DEFINITIONS, document)
    assert refused.code == 400
    assert refused.body["message"].endswith(
        "json: cannot unmarshal bool into Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema."
        "properties.properties.items.properties of type v1.JSONSchemaProps"
    )


async def test_what_cannot_change_once_it_is_served(server: Client) -> None:
    await server.call("POST", DEFINITIONS, widgets.definition())
    for change, field in (
        ({"scope": "Cluster"}, "spec.scope"),
        ({"names": {"kind": "Other"}}, "spec.names.kind"),
        ({"group": "other.example.com"}, "spec.group"),
    ):
        refusal = await server.call("PATCH", DEFINITION, {"spec": change}, content_type=MERGE)
        assert (refusal.code, refusal.body["details"]["causes"][0]["field"]) == (422, field)


async def test_stored_versions_are_remembered_until_somebody_says_otherwise(server: Client) -> None:
    await server.call("POST", DEFINITIONS, widgets.definition())
    both = [widgets.version(storage=False), widgets.version("v2")]
    changed = await server.call("PATCH", DEFINITION, {"spec": {"versions": both}}, content_type=MERGE)
    assert changed.body["status"]["storedVersions"] == ["v1", "v2"]
    only = {"spec": {"versions": [widgets.version("v2")]}}
    refusal = await server.call("PATCH", DEFINITION, only, content_type=MERGE)
    assert refusal.body["details"]["causes"][0]["field"] == "status.storedVersions[0]"
    status = {"status": {"storedVersions": ["v2"]}}
    await server.call("PATCH", f"{DEFINITION}/status", status, content_type=MERGE)
    assert (await server.call("PATCH", DEFINITION, only, content_type=MERGE)).code == 200
    assert (await server.call("GET", widgets.path("v1"))).code == 404


async def test_a_definition_goes_with_its_objects(server: Client) -> None:
    await server.call("POST", DEFINITIONS, widgets.definition())
    await server.call("POST", widgets.path(), widgets.widget("a"))
    finalized = widgets.widget("b")
    finalized["metadata"]["finalizers"] = ["example.com/hold"]
    await server.call("POST", widgets.path(), finalized)
    deletion = await server.call("DELETE", DEFINITION)
    assert deletion.body["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    await server.app.definitions.idle()
    late = await server.call("POST", widgets.path(), widgets.widget("late"))
    assert (late.code, late.body["message"]) == (
        403,
        (
            'widgets.toys.example.com "late" is forbidden: create not allowed while custom resource definition is '
            "terminating"
        ),
    )
    left = (await server.call("GET", widgets.path())).body["items"]
    assert [each["metadata"]["name"] for each in left] == ["b"]
    await server.call("PATCH", f"{widgets.path()}/b", {"metadata": {"finalizers": None}}, content_type=MERGE)
    await server.app.definitions.idle()
    assert (await server.call("GET", DEFINITION)).code == 404
    assert (await server.call("GET", widgets.path())).code == 404


async def test_a_table_of_definitions(server: Client) -> None:
    await server.call("POST", DEFINITIONS, widgets.definition(names={"shortNames": ["w", "wd"]}))
    table = (await server.call("GET", DEFINITIONS, headers=widgets.TABLE)).body
    titles = ["Name", "Scope", "Versions", "Created At", "Group", "Kind", "ShortNames", "Established"]
    assert [column["name"] for column in table["columnDefinitions"]] == titles
    cells = table["rows"][0]["cells"]
    assert cells[:3] == [f"widgets.{widgets.GROUP}", "Namespaced", "v1(storage)"]
    assert cells[4:] == [widgets.GROUP, "Widget", "w,wd", True]


async def test_odd_schemas_earn_warnings(server: Client) -> None:
    spec = widgets.fields(a={"type": "string", "format": "unheard-of"})
    created = await server.call("POST", DEFINITIONS, widgets.definition(widgets.version(spec=spec)))
    assert created.header("warning") == '299 - "unrecognized format \\"unheard-of\\""'


@pytest.mark.parametrize("name", ["v1", "v1alpha1", "foo", "v10beta3", "v01"])
async def test_versions_may_have_any_name(server: Client, name: str) -> None:
    versions = [widgets.version(), widgets.version(name, storage=False)] if name != "v1" else []
    await server.call("POST", DEFINITIONS, widgets.definition(*versions))
    group = (await server.call("GET", f"/apis/{widgets.GROUP}")).body
    assert group["preferredVersion"]["version"] == "v1"
    assert (await server.call("GET", widgets.path(name))).code == 200


async def test_definitions_outlive_the_server(server: Client) -> None:
    await server.call("POST", DEFINITIONS, widgets.definition())
    created = await server.call("POST", widgets.path(), widgets.widget(x=1))
    again = await client.start(store=server.store)
    assert (await again.call("GET", f"{widgets.path()}/w")).body == created.body
    listed = (await again.call("GET", f"/apis/{widgets.GROUP}/v1")).body["resources"]
    assert [each["name"] for each in listed] == ["widgets"]


async def test_watches_end_with_their_kind(server: Client) -> None:
    await server.call("POST", DEFINITIONS, widgets.definition())
    async with server.watch(f"{widgets.path()}?watch=1") as stream:
        await server.call("POST", widgets.path(), widgets.widget())
        assert (await stream.event())["type"] == "ADDED"
        await server.call("DELETE", DEFINITION)
        assert (await stream.event())["type"] == "DELETED"
        assert await stream.event() is None, "the stream ends"


async def test_an_update_warns_of_what_is_new(server: Client) -> None:
    odd = widgets.fields(a={"type": "string", "format": "odd"})
    await server.call("POST", DEFINITIONS, widgets.definition(widgets.version(spec=odd)))
    labelled = await server.call("PATCH", DEFINITION, {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE)
    assert labelled.header("warning") is None
    odder = {"spec": {"versions": [widgets.version(spec=widgets.fields(a={"type": "string", "format": "odder"}))]}}
    changed = await server.call("PATCH", DEFINITION, odder, content_type=MERGE)
    assert changed.header("warning") == '299 - "unrecognized format \\"odder\\""'


async def test_certificates_of_a_conversion_in_use_must_be_some(server: Client) -> None:
    await server.call("POST", DEFINITIONS, widgets.definition())
    client_config = {"url": "https://127.0.0.1:1/convert", "caBundle": "bm9uZQ=="}
    webhook = {"clientConfig": client_config, "conversionReviewVersions": ["v1"]}
    refusal = await server.call(
        "PATCH", DEFINITION, {"spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}}}, content_type=MERGE
    )
    (cause,) = refusal.body["details"]["causes"]
    assert cause["field"] == "spec.conversion.webhookClientConfig.caBundle"
    assert "unable to parse bytes as PEM block" in cause["message"]


async def test_definitions_that_come_at_once_are_all_served_when_they_are_answered(server: Client) -> None:
    async def define(number: int) -> int:
        name = f"things{number}"
        given = widgets.definition(names={"plural": name, "kind": f"Thing{number}"})
        given["metadata"]["name"] = f"{name}.{widgets.GROUP}"
        await server.call("POST", DEFINITIONS, given)
        return (await server.call("GET", f"/apis/{widgets.GROUP}/v1/namespaces/default/{name}")).code

    assert await asyncio.gather(*map(define, range(12))) == [200] * 12


def _version(name: str, *, is_stored: bool, properties: dict[str, Any], **fields: Any) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    return {"name": name, "served": True, "storage": is_stored, "schema": schema, **fields}


async def test_errors_of_versions_with_one_name_are_reported_once(server: Client) -> None:
    columns = [{"name": "a", "type": "string", "jsonPath": ""}]
    versions = [
        _version("v1", is_stored=True, properties={}, additionalPrinterColumns=columns),
        _version("v1", is_stored=False, properties={}, additionalPrinterColumns=[*columns, *columns]),
    ]
    refusal = await server.call("POST", DEFINITIONS, widgets.definition(versions=versions))
    assert [cause["field"] for cause in refusal.body["details"]["causes"]] == [
        "spec.versions[0].additionalPrinterColumns[0].JSONPath",
        "spec.versions[1].additionalPrinterColumns[0].JSONPath",
        "spec.versions[1].additionalPrinterColumns[1].JSONPath",
        "spec.versions",
    ]


@pytest.mark.parametrize(
    ("own", "fields", "want"),
    [
        pytest.param(
            {"b": {"type": "string"}},
            [".spec"],
            'spec.selectableFields: Invalid value: "": may only be set when validations.schema is included',
            id="equal-fields-of-different-schemas",
        ),
        pytest.param(
            {},
            [],
            (
                'spec.versions[0].selectableFields: Invalid value: "": may only be set when '
                "`version.schema.openAPIV3Schema` is not included"
            ),
            id="different-fields-of-equal-schemas",
        ),
    ],
)
async def test_selectable_fields_go_with_schemas(
    server: Client, own: dict[str, Any], fields: list[str], want: str
) -> None:
    common = {"spec": {"type": "string"}}
    versions = [
        _version("v1", is_stored=True, properties=common, selectableFields=[{"jsonPath": ".spec"}]),
        _version(
            "v2",
            is_stored=False,
            properties={**common, **own},
            selectableFields=[{"jsonPath": each} for each in fields],
        ),
    ]
    refusal = await server.call("POST", DEFINITIONS, widgets.definition(versions=versions))
    assert want in refusal.body["message"]
