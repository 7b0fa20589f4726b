"""The surface of an application: another one with more or fewer kinds shares what they have in common."""

import msgspec
import pytest

from drachma.server import status
from drachma.server.surface import apisurface, resources, routes, strategy
from tests.unit.server import served, trees


def _route(surface: apisurface.ApiSurface, path: str) -> routes.Route:
    route = surface.route("GET", path)
    assert route is not None
    return route


def test_kinds_come_and_go() -> None:
    surface, tree = served.surface(), trees.kind()
    more = surface.with_kinds(tree)
    assert more.find(trees.GROUP, "v1", plural="trees") is tree
    assert more.find_kind(f"{trees.GROUP}/v1", "Tree") is tree
    assert more.schema(f"{trees.GROUP}/v1", "Tree") is tree.schema("v1")
    assert _route(more, f"{trees.PATH}/oak").resource is tree
    assert surface.find(trees.GROUP, "v1", plural="trees") is None
    with pytest.raises(routes.NotServedError):
        surface.route("GET", trees.PATH)
    less = more.without(tree)
    assert less.resources == surface.resources
    with pytest.raises(KeyError):
        less.served(tree)


def test_what_is_not_concerned_is_shared() -> None:
    surface = served.surface()
    more = surface.with_kinds(trees.kind())
    assert all(more.served(each) is surface.served(each) for each in surface.resources)
    assert surface.openapi_document("api/v1") is surface.with_kinds(trees.kind()).openapi_document("api/v1")
    assert surface.swagger() is not more.swagger()


@pytest.mark.parametrize(
    ("group", "plural", "name"),
    [
        pytest.param("", "pods", "Tree", id="plural"),
        pytest.param("", "trees", "Pod", id="kind"),
    ],
)
def test_two_of_a_name_are_refused(group: str, plural: str, name: str) -> None:
    with pytest.raises(ValueError, match="something of that name is served already"):
        served.surface().with_kinds(trees.kind(group=group, plural=plural, name=name))


def test_the_same_names_in_another_group_are_others() -> None:
    pods = trees.kind(plural="pods", name="Pod")
    surface = served.surface().with_kinds(pods)
    core = surface.find("", "v1", plural="pods")
    assert core is not None
    assert (core.key, pods.key) == ("pods", f"{trees.GROUP}/pods")
    assert surface.strategy(core) is not surface.strategy(pods)
    assert surface.schema("v1", "Pod") is not surface.schema(f"{trees.GROUP}/v1", "Pod")


def test_documents_tell_of_the_new_kind() -> None:
    surface = served.surface().with_kinds(trees.kind())
    path = f"apis/{trees.GROUP}/v1"
    document = surface.openapi_document(path)
    assert document is not None
    schemas = msgspec.json.decode(document.data)["components"]["schemas"]
    assert schemas["com.example.forest.v1.PodSpec"]["properties"]["branches"]["items"] == {
        "allOf": [{"$ref": "#/components/schemas/com.example.forest.v1.PodSpec"}]
    }
    assert path in msgspec.json.decode(surface.openapi_index())["paths"]
    definitions = msgspec.json.decode(surface.swagger().data)["definitions"]
    assert {"com.example.forest.v1.PodSpec", "io.k8s.api.core.v1.PodSpec"} <= set(definitions)


def test_routes_are_remembered_within_bounds() -> None:
    surface = served.surface()
    first = surface.route("GET", "/api/v1/namespaces/default/pods/p")
    assert surface.route("GET", "/api/v1/namespaces/default/pods/p") is first
    for number in range(10_000):
        surface.route("GET", f"/api/v1/namespaces/default/pods/{number}")
    assert len(surface._routes) <= 8192
    assert surface.route("GET", "/api/v1/namespaces/default/pods/" + "x" * 600) is not None


def test_what_is_refused_is_refused_again() -> None:
    surface = served.surface()
    for _ in range(2):
        with pytest.raises(status.StatusError):
            surface.route("PUT", "/api/v1/pods")


def test_what_others_make_of_a_kind_is_made_once() -> None:
    surface = served.surface()
    pods = surface.find("", "v1", plural="pods")
    assert pods is not None
    created: list[resources.Resource] = []

    def make(kind: strategy.Served, version: str) -> str:
        created.append(kind.resource)
        return f"{kind.resource.plural} in {version}"

    assert [surface.served(pods).derive(make, "v1") for _ in range(3)] == ["pods in v1"] * 3
    assert surface.served(pods).derive(make, "v2") == "pods in v2"
    assert created == [pods, pods]
