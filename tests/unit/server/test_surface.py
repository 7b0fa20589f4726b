"""A kind that comes and goes while the server runs: everything can be done to it, through both doors."""

import pytest

from drachma.client import local, target
from drachma.server import inprocess
from drachma.server.pipeline.dispatcher import Dispatcher
from tests.unit.server import trees
from tests.unit.server.client import Client

APPLY = "application/apply-patch+yaml"
STRATEGIC = "application/strategic-merge-patch+json"
TABLE = {"accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
TREES = target.metadata_of(trees.GROUP, "v1", plural="trees", kind="Tree", namespaced=True)


def _tree(name: str, /, **spec: object) -> dict[str, object]:
    return {"apiVersion": f"{trees.GROUP}/v1", "kind": "Tree", "metadata": {"name": name}, "spec": spec}


def _branch(name: str, *below: object) -> dict[str, object]:
    return {"name": name, "branches": list(below)}


@pytest.fixture
def forest(server: Client) -> Client:
    """A server that has just begun to serve trees."""
    dispatcher = server.app.dispatcher
    dispatcher.surface = dispatcher.surface.with_kinds(trees.kind())
    return server


async def test_there_are_none_at_first(server: Client) -> None:
    assert (await server.call("GET", trees.PATH)).code == 404
    assert (await server.call("POST", trees.PATH, _tree("oak"))).code == 404


async def test_create_get_and_list(forest: Client) -> None:
    oak = _tree("oak", name="", weight=1000, branches=[_branch("a", _branch("b", _branch("c")))])
    created = await forest.call("POST", trees.PATH, oak)
    assert created.code == 201
    # In normal form, all the way down.
    assert created.body["spec"] == {
        "name": "",
        "weight": "1k",
        "branches": [{"name": "a", "branches": [{"name": "b", "branches": [{"name": "c"}]}]}],
    }
    assert (await forest.call("GET", f"{trees.PATH}/oak")).body == created.body
    listed = await forest.call("GET", trees.PATH)
    assert (listed.body["kind"], [each["metadata"]["name"] for each in listed.body["items"]]) == ("TreeList", ["oak"])


@pytest.mark.parametrize(
    ("spec", "query", "want"),
    [
        pytest.param(
            {"branches": [{"by": {"x": {"height": "tall"}}}]},
            "",
            "Go struct field PodSpec.spec.branches.by.height of type int32",
            id="wrong-type",
        ),
        pytest.param(
            {"branches": [{"by": {"x": {"nope": 1}}}]},
            "?fieldValidation=Strict",
            'unknown field "spec.branches[0].by.x.nope"',
            id="unknown-field",
        ),
    ],
)
async def test_what_does_not_fit_is_refused(forest: Client, spec: dict[str, object], query: str, want: str) -> None:
    refused = await forest.call("POST", trees.PATH + query, _tree("oak", **spec))
    assert refused.code == 400
    assert want in refused.body["message"]


async def test_selectors_and_tables(forest: Client) -> None:
    await forest.call("POST", trees.PATH, _tree("oak", name="q", branches=[_branch("a"), _branch("b")]))
    await forest.call("POST", trees.PATH, _tree("elm", name="u"))
    selected = await forest.call("GET", f"{trees.PATH}?fieldSelector=spec.name=u")
    assert [each["metadata"]["name"] for each in selected.body["items"]] == ["elm"]
    refused = await forest.call("GET", f"{trees.PATH}?fieldSelector=spec.height=1")
    assert refused.body["message"] == f"field label not supported for {trees.GROUP}/v1, Kind=Tree: spec.height"
    table = await forest.call("GET", trees.PATH, headers=TABLE)
    assert [row["cells"] for row in table.body["rows"]] == [["elm", 0, "0s"], ["oak", 2, "0s"]]


async def test_patches_merge_by_the_keys_of_inner_lists(forest: Client) -> None:
    await forest.call("POST", trees.PATH, _tree("oak", branches=[_branch("a", _branch("b"))]))
    patch = {"spec": {"branches": [{"name": "a", "branches": [{"name": "b", "height": 3}, {"name": "c"}]}]}}
    patched = await forest.call("PATCH", f"{trees.PATH}/oak", patch, content_type=STRATEGIC)
    assert patched.body["spec"]["branches"][0]["branches"] == [{"name": "b", "height": 3}, {"name": "c"}]


async def test_apply_owns_inner_fields(forest: Client) -> None:
    oak = _tree("oak", branches=[_branch("a", _branch("b"))])
    path = f"{trees.PATH}/oak"
    assert (await forest.call("PATCH", f"{path}?fieldManager=one", oak, content_type=APPLY)).code == 201
    other = _tree("oak", branches=[{"name": "a", "branches": [{"name": "b", "height": 1}]}])
    applied = await forest.call("PATCH", f"{path}?fieldManager=two", other, content_type=APPLY)
    assert applied.code == 200
    owned = {each["manager"]: each["fieldsV1"] for each in applied.body["metadata"]["managedFields"]}
    inner = owned["two"]["f:spec"]["f:branches"]['k:{"name":"a"}']["f:branches"]['k:{"name":"b"}']
    assert inner == {".": {}, "f:height": {}, "f:name": {}}
    third = _tree("oak", branches=[{"name": "a", "branches": [{"name": "b", "height": 2}]}])
    refused = await forest.call("PATCH", f"{path}?fieldManager=one", third, content_type=APPLY)
    assert (refused.code, refused.body["details"]["causes"][0]["field"]) == (
        409,
        '.spec.branches[name="a"].branches[name="b"].height',
    )


async def test_status_is_written_apart(forest: Client) -> None:
    await forest.call("POST", trees.PATH, {**_tree("oak", name="q"), "status": {"leaves": 1}})
    path = f"{trees.PATH}/oak/status"
    body = {"spec": {"name": "other"}, "status": {"leaves": 2}}
    changed = await forest.call("PATCH", path, body, content_type="application/merge-patch+json")
    assert (changed.body["spec"], changed.body["status"]) == ({"name": "q"}, {"leaves": 2})


async def test_discovery_and_openapi(forest: Client) -> None:
    found = await forest.call("GET", f"/apis/{trees.GROUP}/v1")
    assert [each["name"] for each in found.body["resources"]] == ["trees", "trees/status"]
    index = await forest.call("GET", "/openapi/v3")
    document = await forest.call("GET", index.body["paths"][f"apis/{trees.GROUP}/v1"]["serverRelativeURL"])
    assert "com.example.forest.v1.PodSpec" in document.body["components"]["schemas"]


async def test_protobuf(forest: Client) -> None:
    kind = b"\x0a" + bytes([len(f"{trees.GROUP}/v1")]) + f"{trees.GROUP}/v1".encode() + b"\x12\x04Tree"
    inner = b"\x0a\x01b"
    spec = b"\x0a\x01a" + b"\x1a" + bytes([len(inner)]) + inner
    message = b"\x0a\x05\x0a\x03oak" + b"\x12" + bytes([len(spec)]) + spec
    body = b"k8s\x00\x0a" + bytes([len(kind)]) + kind + b"\x12" + bytes([len(message)]) + message
    created = await forest.send("POST", trees.PATH, body, content_type="application/vnd.kubernetes.protobuf")
    assert created.body["spec"] == {"name": "a", "branches": [{"name": "b"}]}


async def test_a_watch_goes_on_when_the_kind_is_gone(forest: Client) -> None:
    dispatcher = forest.app.dispatcher
    tree = dispatcher.surface.find(trees.GROUP, "v1", plural="trees")
    assert tree is not None
    watching = f"{trees.PATH}?watch=1"
    async with forest.watch(watching, headers=TABLE) as table, forest.watch(watching) as plain:
        await forest.call("POST", trees.PATH, _tree("oak"))
        assert (await plain.event())["object"]["kind"] == "Tree"
        assert (await table.event())["object"]["rows"][0]["cells"][0] == "oak"
        before = inprocess.InProcess(Dispatcher(dispatcher.services, dispatcher.surface))
        dispatcher.surface = dispatcher.surface.without(tree)
        assert (await forest.call("GET", trees.PATH)).code == 404
        assert (await forest.call("GET", f"/apis/{trees.GROUP}")).code == 404
        # Whatever still goes on on the old surface is heard by those who watch on it.
        await local.LocalClient(before).delete(TREES, "oak", namespace="default")
        assert (await plain.event())["type"] == "DELETED"
        assert (await table.event())["object"]["rows"][0]["cells"][0] == "oak"


async def test_objects_are_there_again_when_the_kind_is(forest: Client) -> None:
    dispatcher = forest.app.dispatcher
    tree = dispatcher.surface.find(trees.GROUP, "v1", plural="trees")
    assert tree is not None
    created = await forest.call("POST", trees.PATH, _tree("oak"))
    dispatcher.surface = dispatcher.surface.without(tree)
    dispatcher.surface = dispatcher.surface.with_kinds(trees.kind())
    assert (await forest.call("GET", f"{trees.PATH}/oak")).body == created.body


async def test_components_in_process_see_it_too(forest: Client) -> None:
    await forest.call("POST", trees.PATH, _tree("oak"))
    backend = inprocess.InProcess(forest.app.dispatcher)
    assert ("forest.example.com", "trees") in {(each.group, each.plural) for each in await backend.resources()}
    oak = await local.LocalClient(backend).get(TREES, "oak", namespace="default")
    assert oak.metadata.name == "oak"
