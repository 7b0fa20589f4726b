"""Custom objects as clients see them."""

from typing import Any

import pytest

from tests.unit.server.client import Client
from tests.unit.server.kinds.apiextensions import widgets
from tests.unit.server.kinds.apiextensions.widgets import APPLY, DEFINITION, DEFINITIONS, MERGE, TABLE

PATH = widgets.path()


async def _define(server: Client, *versions: dict[str, Any], **spec: Any) -> None:
    created = await server.call("POST", DEFINITIONS, widgets.definition(*versions, **spec))
    assert created.code == 201, created.body


async def _spec(server: Client, spec: dict[str, Any]) -> None:
    await _define(server, widgets.version(spec=spec))


async def test_create_read_change_delete(server: Client) -> None:
    await _define(server)
    created = await server.call("POST", PATH, widgets.widget(x=1))
    assert (created.code, created.body["spec"], created.body["metadata"]["generation"]) == (201, {"x": 1}, 1)
    assert (await server.call("GET", f"{PATH}/w")).body == created.body
    listed = (await server.call("GET", PATH)).body
    assert listed["items"] == [created.body], "items of lists say of which kind they are"
    created.body["spec"] = {"x": 2}
    changed = await server.call("PUT", f"{PATH}/w", created.body)
    assert (changed.code, changed.body["metadata"]["generation"]) == (200, 2)
    labelled = await server.call("PATCH", f"{PATH}/w", {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE)
    assert labelled.body["metadata"]["generation"] == 2
    deletion = await server.call("DELETE", f"{PATH}/w")
    assert deletion.body["details"]["kind"] == "widgets"
    assert (await server.call("GET", f"{PATH}/w")).code == 404


async def test_updates_name_the_version_that_they_change(server: Client) -> None:
    await _define(server)
    await server.call("POST", PATH, widgets.widget())
    refusal = await server.call("PUT", f"{PATH}/w", widgets.widget())
    assert "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in refusal.body["message"]


async def test_unknown_fields(server: Client) -> None:
    await _spec(server, widgets.fields(a={"type": "string"}))
    given = widgets.widget(a="x", b=1) | {"extra": 1}
    strict = await server.call("POST", f"{PATH}?fieldValidation=Strict", given)
    assert strict.code == 400
    assert strict.body["message"].endswith('strict decoding error: unknown field "extra", unknown field "spec.b"')
    warned = await server.call("POST", PATH, given)
    assert (warned.code, warned.body["spec"], "extra" in warned.body) == (201, {"a": "x"}, False)
    warnings = [value for name, value in warned.headers if name.lower() == "warning"]
    assert warnings == ['299 - "unknown field \\"extra\\""', '299 - "unknown field \\"spec.b\\""']


async def test_a_strategic_merge_patch_is_not_for_custom_resources(server: Client) -> None:
    await _define(server)
    await server.call("POST", PATH, widgets.widget())
    refusal = await server.call("PATCH", f"{PATH}/w", {}, content_type="application/strategic-merge-patch+json")
    assert refusal.code == 415
    assert "application/json-patch+json, application/merge-patch+json" in refusal.body["message"]


async def test_objects_follow_their_definition(server: Client) -> None:
    await _spec(server, widgets.fields(a={"type": "string", "default": "x"}, gone={"type": "string"}))
    await server.call("POST", PATH, widgets.widget(gone="soon"))
    later = widgets.version(spec=widgets.fields(a={"type": "string"}, new={"type": "string", "default": "n"}))
    await server.call("PATCH", DEFINITION, {"spec": {"versions": [later]}}, content_type=MERGE)
    assert (await server.call("GET", f"{PATH}/w")).body["spec"] == {"a": "x", "new": "n"}
    assert (await server.call("GET", PATH)).body["items"][0]["spec"] == {"a": "x", "new": "n"}
    table = (await server.call("GET", PATH, headers=TABLE)).body
    assert table["rows"][0]["cells"][0] == "w"


async def test_versions(server: Client) -> None:
    await _define(
        server,
        widgets.version("v1alpha1", storage=False, deprecated=True, spec=widgets.fields(
            old={"type": "string"}, both={"type": "string"},
        )),
        widgets.version("v1", spec=widgets.fields(new={"type": "string", "default": "d"}, both={"type": "string"})),
    )  # fmt: skip
    created = await server.call("POST", widgets.path("v1alpha1"), widgets.widget(version="v1alpha1", old="1", both="2"))
    assert created.body["spec"] == {"both": "2"}, "what the stored version does not have is lost"
    assert created.header("warning") == (
        '299 - "toys.example.com/v1alpha1 Widget is deprecated; use toys.example.com/v1 Widget"'
    )
    read_back = (await server.call("GET", f"{PATH}/w")).body
    assert (read_back["apiVersion"], read_back["spec"]) == (f"{widgets.GROUP}/v1", {"both": "2", "new": "d"})
    changed = await server.call("PATCH", f"{widgets.path('v1alpha1')}/w", {"spec": {"both": "3"}}, content_type=MERGE)
    assert (changed.body["apiVersion"], changed.body["spec"]) == (f"{widgets.GROUP}/v1alpha1", {"both": "3"})
    assert (await server.call("GET", f"{PATH}/w")).body["spec"] == {"both": "3", "new": "d"}
    wrong = await server.call("POST", PATH, widgets.widget("v", version="v1alpha1"))
    assert wrong.body["message"].startswith("the API version in the data (toys.example.com/v1alpha1) does not match")


async def test_what_a_version_requires_need_not_be_stored(server: Client) -> None:
    old = widgets.fields(old={"type": "string"}) | {"required": ["old"]}
    await _define(server, widgets.version("v1alpha1", storage=False, spec=old), widgets.version(spec=widgets.fields()))
    path = widgets.path("v1alpha1")
    assert (await server.call("POST", path, widgets.widget(version="v1alpha1", old="1"))).code == 201
    refusal = await server.call("POST", path, widgets.widget("v", version="v1alpha1"))
    assert refusal.body["message"].endswith("spec.old: Required value")


async def test_status_and_scale_are_written_apart(server: Client) -> None:
    scale = {
        "specReplicasPath": ".spec.size",
        "statusReplicasPath": ".status.size",
        "labelSelectorPath": ".status.labels",
    }
    await _define(server, widgets.version(subresources={"status": {}, "scale": scale}))
    created = await server.call("POST", PATH, widgets.widget(size=1) | {"status": {"size": 5}})
    assert "status" not in created.body
    patch = {"status": {"size": 2, "labels": "a=b"}, "spec": {"size": 9}, "metadata": {"labels": {"l": "m"}}}
    status = await server.call("PATCH", f"{PATH}/w/status", patch, content_type=MERGE)
    assert (status.body["spec"], status.body["status"]) == ({"size": 1}, {"size": 2, "labels": "a=b"})
    assert (status.body["metadata"].get("labels"), status.body["metadata"]["generation"]) == (None, 1)
    read_back = (await server.call("GET", f"{PATH}/w/scale")).body
    assert (read_back["spec"], read_back["status"]) == ({"replicas": 1}, {"replicas": 2, "selector": "a=b"})
    scaled = await server.call("PATCH", f"{PATH}/w/scale", {"spec": {"replicas": 5}}, content_type=MERGE)
    assert scaled.body["spec"] == {"replicas": 5}
    assert (await server.call("GET", f"{PATH}/w")).body["spec"] == {"size": 5}
    refusal = await server.call("PATCH", f"{PATH}/w/scale", {"spec": {"replicas": -1}}, content_type=MERGE)
    assert refusal.body["message"].endswith(".spec.size: Invalid value: -1: should be a non-negative integer")


async def test_owners_of_fields_follow_list_types(server: Client) -> None:
    keyed = {
        "type": "array",
        "items": widgets.fields(k={"type": "string"}, v={"type": "string"}) | {"required": ["k"]},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
    }
    await _spec(server, widgets.fields(list=keyed))
    for manager, key in (("one", "1"), ("two", "2")):
        given = widgets.widget(list=[{"k": key, "v": manager}])
        applied = await server.call("PATCH", f"{PATH}/w?fieldManager={manager}", given, content_type=APPLY)
    assert applied.body["spec"]["list"] == [{"k": "1", "v": "one"}, {"k": "2", "v": "two"}]
    owned = applied.body["metadata"]["managedFields"][1]["fieldsV1"]["f:spec"]["f:list"]
    assert owned == {'k:{"k":"2"}': {".": {}, "f:k": {}, "f:v": {}}}
    conflict = await server.call(
        "PATCH", f"{PATH}/w?fieldManager=two", widgets.widget(list=[{"k": "1", "v": "x"}]), content_type=APPLY
    )
    assert conflict.code == 409


async def test_columns(server: Client) -> None:
    columns = [
        {"name": "Color", "type": "string", "jsonPath": ".spec.color", "description": "Its color."},
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1},
        {"name": "Ready", "type": "string", "jsonPath": '.spec.conditions[?(@.type=="Ready")].status'},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    await _define(server, widgets.version(additionalPrinterColumns=columns))
    conditions = [{"type": "Other", "status": "x"}, {"type": "Ready", "status": "True"}]
    await server.call("POST", PATH, widgets.widget(color="red", size=3, conditions=conditions))
    await server.call("POST", PATH, widgets.widget("v"))
    server.clock.advance(90)
    table = (await server.call("GET", PATH, headers=TABLE)).body
    assert [(each["name"], each["type"], each["priority"]) for each in table["columnDefinitions"]] == [
        ("Name", "string", 0),
        ("Color", "string", 0),
        ("Size", "integer", 1),
        ("Ready", "string", 0),
        ("Age", "date", 0),
    ]
    assert table["columnDefinitions"][2]["description"] == (
        "Custom resource definition column (in JSONPath format): .spec.size"
    )
    rows = [row["cells"] for row in table["rows"]]
    assert rows == [["v", None, None, None, "90s"], ["w", "red", 3, "True", "90s"]]


@pytest.mark.parametrize(
    ("selector", "want"),
    [
        pytest.param("spec.color=red", ["a"], id="equal"),
        pytest.param("spec.color!=red", ["b", "c"], id="unequal"),
        pytest.param("spec.n=2", ["b"], id="number"),
        pytest.param("spec.on=true", ["a"], id="boolean"),
        pytest.param("spec.color=", ["c"], id="absent"),
        pytest.param("metadata.name=c", ["c"], id="name"),
    ],
)
async def test_selectable_fields(server: Client, selector: str, want: list[str]) -> None:
    spec = widgets.fields(color={"type": "string"}, n={"type": "integer"}, on={"type": "boolean"})
    selected = [{"jsonPath": f".spec.{name}"} for name in ("color", "n", "on")]
    await _define(server, widgets.version(spec=spec, selectableFields=selected))
    contents: dict[str, dict[str, Any]] = {"a": {"color": "red", "on": True}, "b": {"color": "blue", "n": 2}, "c": {}}
    for name, content in contents.items():
        await server.call("POST", PATH, widgets.widget(name, **content))
    listed = (await server.call("GET", f"{PATH}?fieldSelector={selector}")).body
    assert [each["metadata"]["name"] for each in listed["items"]] == want
    unknown = await server.call("GET", f"{PATH}?fieldSelector=spec.nope=1")
    assert (unknown.code, unknown.body["message"]) == (400, "field label not supported: spec.nope")


async def test_discovery_and_openapi(server: Client) -> None:
    names = {"singular": "wid", "shortNames": ["wd"], "categories": ["all"], "listKind": "WidgetBunch"}
    spec = widgets.fields(color={"type": "string", "description": "What it looks like."})
    await _define(server, widgets.version(spec=spec), names=names)
    (result,) = (await server.call("GET", f"/apis/{widgets.GROUP}/v1")).body["resources"]
    assert (result["singularName"], result["shortNames"], result["categories"]) == ("wid", ["wd"], ["all"])
    assert result["verbs"] == ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
    assert (await server.call("GET", PATH)).body["kind"] == "WidgetBunch"
    document = (await server.call("GET", f"/openapi/v3/apis/{widgets.GROUP}/v1")).body
    schema = document["components"]["schemas"]["com.example.toys.v1.Widget"]
    assert schema["properties"]["spec"]["properties"]["color"]["description"] == "What it looks like."
    assert schema["x-kubernetes-group-version-kind"] == [{"group": widgets.GROUP, "version": "v1", "kind": "Widget"}]
    index = (await server.call("GET", "/openapi/v3")).body["paths"]
    assert f"apis/{widgets.GROUP}/v1" in index


async def test_openapi_describes_the_envelope_in_upstreams_words(server: Client) -> None:
    template = {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"x": {"type": "string"}}}
    selectable = [{"jsonPath": ".spec.color"}]
    spec = widgets.fields(color={"type": "string"}, template=template)
    await _define(server, widgets.version(spec=spec, selectableFields=selectable))
    document = (await server.call("GET", f"/openapi/v3/apis/{widgets.GROUP}/v1")).body
    assert document["info"] == {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
    schemas = document["components"]["schemas"]
    meta = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1"
    widget, listing = (schemas[f"com.example.toys.v1.{kind}"] for kind in ("Widget", "WidgetList"))
    conventions = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
    assert widget["properties"]["apiVersion"]["description"].endswith(f"More info: {conventions}#resources")
    assert widget["properties"]["metadata"] == {
        "description": f"Standard object's metadata. More info: {conventions}#metadata",
        "allOf": [{"$ref": f"{meta}.ObjectMeta"}],
    }
    embedded = widget["properties"]["spec"]["properties"]["template"]
    assert embedded["required"] == ["kind", "apiVersion"]
    assert set(embedded["properties"]) == {"x", "apiVersion", "kind", "metadata"}
    assert listing["description"] == "WidgetList is a list of Widget"
    assert listing["properties"]["items"] == {
        "description": f"List of widgets. More info: {conventions}",
        "type": "array",
        "items": {"$ref": "#/components/schemas/com.example.toys.v1.Widget"},
    }
    assert "default" not in listing["properties"]["metadata"]
    for schema in (widget, listing):
        assert schema["x-kubernetes-selectable-fields"] == [{"fieldPath": "spec.color"}]


async def test_openapi_2_does_not_list_fields_of_resources_that_keep_unknown_ones(server: Client) -> None:
    free = {**widgets.version(), "schema": {"openAPIV3Schema": widgets.FREE}}
    await _define(server, free)
    document = (await server.call("GET", "/openapi/v2")).body
    assert "properties" not in document["definitions"]["com.example.toys.v1.Widget"]


async def test_paths_that_lead_nowhere(server: Client) -> None:
    await _define(server)
    await server.call("POST", PATH, widgets.widget())
    for path in (f"/apis/{widgets.GROUP}/v2", f"/apis/{widgets.GROUP}/v1/gizmos"):
        nothing = await server.call("GET", path)
        assert (nothing.code, nothing.body) == (404, "404 page not found\n")
    below = await server.call("GET", f"{PATH}/w/logs")
    assert below.body["message"] == 'widgets.toys.example.com "w" not found'


async def test_rules_and_their_ratcheting(server: Client) -> None:
    await _spec(server, widgets.fields(a={"type": "string"}, b={"type": "string"}))
    await server.call("POST", PATH, widgets.widget(a="long", b="bad"))
    stricter = widgets.fields(
        a={"type": "string", "maxLength": 2},
        b={"type": "string", "x-kubernetes-validations": [{"rule": "self != 'bad'", "message": "no good"}]},
    )
    await server.call("PATCH", DEFINITION, {"spec": {"versions": [widgets.version(spec=stricter)]}}, content_type=MERGE)
    labelled = await server.call("PATCH", f"{PATH}/w", {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE)
    assert labelled.code == 200, "what was there before may stay"
    refusal = await server.call("PATCH", f"{PATH}/w", {"spec": {"a": "longer"}}, content_type=MERGE)
    assert refusal.body["details"]["causes"][0]["message"] == "Too long: may not be more than 2 bytes"


async def test_odd_metadata_is_refused(server: Client) -> None:
    await _define(server)
    given = widgets.widget()
    given["metadata"]["labels"] = 5
    refusal = await server.call("POST", PATH, given)
    assert refusal.code == 400
    assert "cannot unmarshal number into Go struct field ObjectMeta.metadata.labels" in refusal.body["message"]


async def test_odd_finalizers_earn_warnings(server: Client) -> None:
    await _define(server)
    given = widgets.widget()
    given["metadata"]["finalizers"] = ["odd"]
    created = await server.call("POST", PATH, given)
    assert "prefer a domain-qualified finalizer name to avoid accidental conflicts" in (created.header("warning") or "")


async def test_an_applied_object_owns_what_it_must_have(server: Client) -> None:
    needed = widgets.fields(a={"type": "string"}) | {"required": ["a"]}
    version = widgets.version(spec=needed)
    version["schema"]["openAPIV3Schema"]["required"] = ["spec"]
    await _define(server, version)
    applied = await server.call("PATCH", f"{PATH}/w?fieldManager=m", widgets.widget(a="x"), content_type=APPLY)
    assert applied.code == 201
    assert applied.body["metadata"]["managedFields"][0]["fieldsV1"] == {"f:spec": {"f:a": {}}}
    lacking = await server.call("PATCH", f"{PATH}/v?fieldManager=m", widgets.widget("v"), content_type=APPLY)
    assert lacking.body["message"].endswith("spec.a: Required value")


@pytest.mark.parametrize(
    ("change", "code", "want"),
    [
        pytest.param(
            {"kind": "Gadget"},
            422,
            'Gadget.toys.example.com "w" is invalid: kind: Invalid value: "Gadget": must be Widget',
            id="another-kind",
        ),
        pytest.param(
            {"apiVersion": "v1"},
            400,
            "the API version in the data (v1) does not match the expected API version (toys.example.com/v1)",
            id="another-version",
        ),
        pytest.param({"kind": ""}, 400, "the object provided is unrecognized (must be of type Widget): ", id="no-kind"),
    ],
)
async def test_bodies_of_another_kind(server: Client, change: dict[str, Any], code: int, want: str) -> None:
    await _define(server)
    refusal = await server.call("POST", PATH, widgets.widget() | change)
    assert refusal.code == code
    assert refusal.body["message"].startswith(want)
