import pytest

from drachma.server import status
from drachma.server.surface import routes
from tests.unit.server import served

CATALOG = served.CATALOG


@pytest.mark.parametrize(
    ("method", "path", "want"),
    [
        pytest.param("GET", "/api/v1/pods", ("pods", "list", None, "", ""), id="all-namespaces"),
        pytest.param("GET", "/api/v1/namespaces/a/pods", ("pods", "list", "a", "", ""), id="one-namespace"),
        pytest.param("GET", "/api/v1/namespaces/a/pods/p", ("pods", "get", "a", "p", ""), id="object"),
        pytest.param("GET", "/api/v1/namespaces/a", ("namespaces", "get", "", "a", ""), id="namespace"),
        pytest.param("GET", "/api/v1/namespaces", ("namespaces", "list", "", "", ""), id="namespaces"),
        pytest.param(
            "PUT", "/api/v1/namespaces/a/finalize", ("namespaces", "update", "", "a", "finalize"), id="finalize"
        ),
        pytest.param(
            "PATCH", "/api/v1/namespaces/a/status", ("namespaces", "patch", "", "a", "status"), id="namespace-status"
        ),
        pytest.param(
            "POST", "/api/v1/namespaces/a/pods/p/binding", ("pods", "create", "a", "p", "binding"), id="binding"
        ),
        pytest.param("POST", "/apis/batch/v1/namespaces/a/jobs", ("jobs", "create", "a", "", ""), id="create"),
        pytest.param(
            "DELETE",
            "/apis/resource.k8s.io/v1/resourceslices",
            ("resourceslices", "deletecollection", "", "", ""),
            id="delete-collection",
        ),
        pytest.param("GET", "/api/v1/watch/pods", ("pods", "watch", None, "", ""), id="old-watch"),
        pytest.param(
            "GET", "/api/v1/watch/namespaces/a/pods/p", ("pods", "watch", "a", "p", ""), id="old-watch-of-an-object"
        ),
    ],
)
def test_find(method: str, path: str, want: tuple[str, str, str | None, str, str]) -> None:
    route = routes.find(CATALOG, method, path)
    assert route is not None
    subresource = route.subresource.name if route.subresource is not None else ""
    assert (route.resource.plural, route.verb, route.namespace, route.name, subresource) == want


@pytest.mark.parametrize("path", ["/api", "/api/v1", "/apis", "/apis/batch", "/apis/batch/v1", "/apis/batch/v1/"])
def test_discovery_is_no_resource(path: str) -> None:
    assert routes.find(CATALOG, "GET", path) is None


def test_unknown_groups_are_not_served() -> None:
    with pytest.raises(routes.NotServedError):
        routes.find(CATALOG, "GET", "/apis/nope.example.com/v1/things")


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        pytest.param("GET", "/apis/batch/v9/jobs", 404, id="unknown-version"),
        pytest.param("GET", "/api/v2/pods", 404, id="unknown-version-of-the-core"),
        pytest.param("GET", "/api/v1/namespaces/a/nopes", 404, id="unknown-resource"),
        pytest.param("GET", "/api/v1/namespaces/a/nodes", 404, id="cluster-scope-in-a-namespace"),
        pytest.param("GET", "/api/v1/pods/p", 404, id="namespaced-without-namespace"),
        pytest.param("GET", "/api/v1/namespaces/a/pods/p/logs", 404, id="unknown-subresource"),
        pytest.param("GET", "/api/v1/namespaces/a/pods/p/status/x", 404, id="too-long"),
        pytest.param("POST", "/api/v1/pods", 405, id="create-across-namespaces"),
        pytest.param("DELETE", "/api/v1/pods", 405, id="delete-across-namespaces"),
        pytest.param("DELETE", "/api/v1/namespaces", 405, id="all-namespaces-at-once"),
        pytest.param("PUT", "/api/v1/namespaces/a/pods", 405, id="replace-a-collection"),
        pytest.param("POST", "/api/v1/namespaces/a/pods/p", 405, id="create-under-a-name"),
        pytest.param("GET", "/api/v1/namespaces/a/pods/p/binding", 405, id="read-a-binding"),
        pytest.param("DELETE", "/api/v1/nodes/n/status", 405, id="delete-a-status"),
        pytest.param("BREW", "/api/v1/nodes", 405, id="unknown-method"),
    ],
)
def test_refused(method: str, path: str, code: int) -> None:
    with pytest.raises(status.StatusError) as caught:
        routes.find(CATALOG, method, path)
    assert caught.value.code == code
