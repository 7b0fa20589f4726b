"""Attributes of requests for authorisers: from their path alone, and from calls."""

import urllib.parse
from typing import Any

import msgspec
import pytest

from drachma.server.access import attributes
from drachma.server.access.authorization import Attributes
from drachma.server.calls import options
from drachma.server.calls.call import Call, Target
from drachma.server.surface import verbs
from drachma.server.user import User
from tests.unit.server import served

USER = User(name="ann")
CLAIM = {"group": "resource.k8s.io", "version": "v1", "resource": "resourceclaims"}
SLICE = {"group": "resource.k8s.io", "version": "v1", "resource": "resourceslices"}
POD = {"version": "v1", "resource": "pods", "namespace": "n"}
SPACE = {"version": "v1", "resource": "namespaces"}


def shown(attributes: Attributes) -> dict[str, Any]:
    """Return all attributes but the user, with selectors as pairs."""
    fields = {field: getattr(attributes, field) for field in msgspec.structs.asdict(attributes)}
    fields["fields"] = [(term.field, term.value) for term in attributes.fields]
    fields["labels"] = [requirement.key for requirement in attributes.labels]
    del fields["user"]
    return {key: value for key, value in fields.items() if value or (key == "path" and value is not None)}


PATHS = [
    pytest.param("GET", "/healthz", {"verb": "get", "path": "/healthz"}, id="beside-the-resources"),
    pytest.param("POST", "/", {"verb": "post", "path": "/"}, id="the-root"),
    pytest.param("GET", "/apis/g/v1", {"verb": "get", "path": "/apis/g/v1"}, id="a-group-version"),
    pytest.param("GET", "/api/v1", {"verb": "get", "path": "/api/v1"}, id="the-core-version"),
    pytest.param("GET", "/api/v1/nothings", {"verb": "list", "version": "v1", "resource": "nothings"}, id="unserved"),
    pytest.param("POST", "/api/v1/namespaces/n/pods", {"verb": "create", **POD}, id="create"),
    pytest.param("HEAD", "/api/v1/namespaces/n/pods/p", {"verb": "get", "name": "p", **POD}, id="head"),
    pytest.param("TRACE", "/api/v1/namespaces/n/pods/p", {"verb": "", "name": "p", **POD}, id="no-verb"),
    pytest.param(
        "PUT",
        "/api/v1/namespaces/n/pods/p/status/more",
        {"verb": "update", "name": "p", "subresource": "status", **POD},
        id="below-a-subresource",
    ),
    pytest.param(
        "GET", "/api/v1/watch/namespaces/n/pods/p", {"verb": "watch", "name": "p", **POD}, id="a-verb-in-the-path"
    ),
    pytest.param(
        "GET", "/api/v1/namespaces/n", {"verb": "get", "name": "n", "namespace": "n", **SPACE}, id="namespace"
    ),
    pytest.param(
        "PUT",
        "/api/v1/namespaces/n/finalize",
        {"verb": "update", "name": "n", "namespace": "n", "subresource": "finalize", **SPACE},
        id="below-a-namespace",
    ),
    pytest.param("DELETE", "/api/v1/namespaces/n/pods", {"verb": "deletecollection", **POD}, id="collection"),
    pytest.param(
        "GET",
        "/api/v1/namespaces/n/pods?fieldSelector=metadata.name%3Dp",
        {"verb": "list", "name": "p", "fields": [("metadata.name", "p")], **POD},
        id="a-list-of-one",
    ),
    pytest.param(
        "DELETE",
        "/api/v1/namespaces/n/pods?fieldSelector=metadata.name%3Dp&labelSelector=a%3Db",
        {"verb": "deletecollection", "fields": [("metadata.name", "p")], "labels": ["a"], **POD},
        id="a-collection-of-one",
    ),
    pytest.param(
        "GET",
        "/api/v1/namespaces/n/pods?fieldSelector=nonsense&labelSelector=%3D",
        {"verb": "list", **POD},
        id="unreadable",
    ),
    pytest.param(
        "GET",
        "/api/v1/namespaces/n/pods?fieldSelector=metadata.name%3D..",
        {"verb": "list", "fields": [("metadata.name", "..")], **POD},
        id="not-a-name",
    ),
    pytest.param(
        "GET",
        "/apis/resource.k8s.io/v1/resourceslices?watch=1&fieldSelector=spec.nodeName%3Dn1",
        {"verb": "watch", "fields": [("spec.nodeName", "n1")], **SLICE},
        id="a-limited-watch",
    ),
]


def parsed(path: str) -> tuple[str, options.Query]:
    place, _, query = path.partition("?")
    return place, urllib.parse.parse_qs(query)


@pytest.mark.parametrize(("method", "path", "want"), PATHS)
def test_what_a_path_is_about(method: str, path: str, want: dict[str, Any]) -> None:
    place, query = parsed(path)
    found = shown(attributes.from_path(method, place, user=USER, query=query))
    assert found == {key: value for key, value in want.items() if value}


SERVED = [
    "GET /api/v1/namespaces/n/pods",
    "GET /api/v1/pods?watch=true",
    "POST /api/v1/namespaces/n/pods",
    "POST /api/v1/namespaces/n/pods/p/binding",
    "PATCH /api/v1/namespaces/n/pods/p/status",
    "DELETE /api/v1/namespaces/n/pods?fieldSelector=metadata.name%3Dp&labelSelector=a",
    "GET /api/v1/namespaces/n/pods?fieldSelector=metadata.name%3Dp",
    "GET /api/v1/namespaces",
    "GET /api/v1/namespaces/n",
    "PUT /api/v1/namespaces/n/finalize",
    "DELETE /api/v1/nodes/m",
    "GET /apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName%3Dm",
    "PUT /apis/resource.k8s.io/v1/namespaces/n/resourceclaims/c/status",
]


@pytest.mark.parametrize("request_line", SERVED)
def test_a_call_is_about_what_its_path_is_about(request_line: str) -> None:
    method, _, path = request_line.partition(" ")
    place, query = parsed(path)
    surface = served.surface()
    route = surface.route(method, place)
    assert route is not None
    verb = verbs.WATCH if route.verb == verbs.LIST and options.boolean(query, "watch") else route.verb
    target = Target(route.resource, route.version, route.namespace, route.name, route.subresource)
    call = Call(user=USER, verb=verb, surface=surface, target=target, query=query)
    assert shown(attributes.from_call(call)) == shown(attributes.from_path(method, place, user=USER, query=query))
