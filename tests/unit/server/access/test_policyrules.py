"""Rules of roles: what they allow, and which include which."""

import pytest

from drachma.server.access import policyrules
from drachma.server.access.policyrules import Permissions, Rule

PODS = Rule(verbs=("get", "list"), groups=("",), resources=("pods", "pods/log"))
ONE_SECRET = Rule(verbs=("get",), groups=("",), resources=("secrets",), names=("one",))
SCALES = Rule(verbs=("*",), groups=("*",), resources=("*/scale",))
PATHS = Rule(verbs=("get",), paths=("/healthz", "/apis/*"))


@pytest.mark.parametrize(
    ("verb", "group", "resource", "name", "want"),
    [
        pytest.param("get", "", "pods", "p", "some", id="a-pod"),
        pytest.param("list", "", "pods", "", "some", id="pods"),
        pytest.param("delete", "", "pods", "p", None, id="another-verb"),
        pytest.param("get", "apps", "pods", "p", None, id="another-group"),
        pytest.param("get", "", "pods/log", "p", "some", id="below"),
        pytest.param("get", "", "pods/status", "p", None, id="below-elsewhere"),
        pytest.param("get", "", "secrets", "one", "some", id="by-name"),
        pytest.param("get", "", "secrets", "two", None, id="another-name"),
        pytest.param("list", "", "secrets", "", None, id="all-names"),
        pytest.param("update", "apps", "deployments/scale", "d", "others", id="below-everything"),
        pytest.param("update", "apps", "deployments", "d", None, id="not-below"),
        pytest.param("get", "", "scale", "d", None, id="not-below-anything"),
    ],
)
def test_what_rules_allow(verb: str, group: str, resource: str, name: str, want: str | None) -> None:
    permissions = Permissions([("some", (PODS, ONE_SECRET)), ("others", (SCALES, PATHS))])
    resource, _, subresource = resource.partition("/")
    source = permissions.find_resource_source(verb, group, resource=resource, subresource=subresource, name=name)
    assert source == want


def test_a_star_is_every_resource_and_what_is_below() -> None:
    permissions = Permissions([("all", policyrules.EVERYTHING)])
    assert permissions.find_resource_source("fly", "x", resource="things", subresource="below", name="n") == "all"
    assert permissions.find_path_source("post", "/anything") == "all"


@pytest.mark.parametrize(
    ("verb", "path", "want"),
    [
        pytest.param("get", "/healthz", True, id="a-path"),
        pytest.param("post", "/healthz", False, id="another-verb"),
        pytest.param("get", "/healthz/etcd", False, id="below-a-path"),
        pytest.param("get", "/apis/apps/v1", True, id="below-a-star"),
        pytest.param("get", "/apis", False, id="above-a-star"),
    ],
)
def test_what_rules_allow_beside_resources(verb: str, path: str, want: bool) -> None:
    assert (Permissions([("some", (PODS, PATHS))]).find_path_source(verb, path) is not None) is want


@pytest.mark.parametrize(
    ("owned", "granted", "want"),
    [
        pytest.param([PODS], PODS, [], id="the-same"),
        pytest.param([*policyrules.EVERYTHING], SCALES, [], id="everything"),
        pytest.param([SCALES], Rule(verbs=("get",), groups=("apps",), resources=("a/scale",)), [], id="below-all"),
        pytest.param([ONE_SECRET], ONE_SECRET, [], id="a-name"),
        pytest.param(
            [ONE_SECRET],
            Rule(verbs=("get",), groups=("",), resources=("secrets",)),
            ['{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'],
            id="all-names",
        ),
        pytest.param(
            [PODS],
            Rule(verbs=("get", "create", "delete"), groups=("",), resources=("pods",)),
            ['{APIGroups:[""], Resources:["pods"], Verbs:["create" "delete"]}'],
            id="verbs-together",
        ),
        pytest.param(
            [PATHS],
            Rule(verbs=("get",), paths=("/apis/x", "/metrics")),
            ['{NonResourceURLs:["/metrics"], Verbs:["get"]}'],
            id="paths",
        ),
    ],
)
def test_what_is_missing(owned: list[Rule], granted: Rule, want: list[str]) -> None:
    assert [str(rule) for rule in policyrules.compact(policyrules.find_missing(owned, [granted]))] == want
