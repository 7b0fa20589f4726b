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
        pytest.param("get", "", "pods", "p", True, id="a-pod"),
        pytest.param("list", "", "pods", "", True, id="pods"),
        pytest.param("delete", "", "pods", "p", False, id="another-verb"),
        pytest.param("get", "apps", "pods", "p", False, id="another-group"),
        pytest.param("get", "", "pods/log", "p", True, id="below"),
        pytest.param("get", "", "pods/status", "p", False, id="below-elsewhere"),
        pytest.param("get", "", "secrets", "one", True, id="by-name"),
        pytest.param("get", "", "secrets", "two", False, id="another-name"),
        pytest.param("list", "", "secrets", "", False, id="all-names"),
        pytest.param("update", "apps", "deployments/scale", "d", True, id="below-everything"),
        pytest.param("update", "apps", "deployments", "d", False, id="not-below"),
        pytest.param("get", "", "scale", "d", False, id="not-below-anything"),
    ],
)
def test_what_rules_allow(verb: str, group: str, resource: str, name: str, want: bool) -> None:
    permissions = Permissions((PODS, ONE_SECRET, SCALES, PATHS))
    resource, _, subresource = resource.partition("/")
    assert permissions.allow(verb, group, resource=resource, subresource=subresource, name=name) is want


def test_a_star_is_every_resource_and_what_is_below() -> None:
    permissions = Permissions(policyrules.EVERYTHING)
    assert permissions.allow("fly", "x", resource="things", subresource="below", name="n")
    assert permissions.allow_path("post", "/anything")


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
    assert Permissions((PODS, PATHS)).allow_path(verb, path) is want


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
    assert [str(rule) for rule in policyrules.compact(policyrules.missing(owned, [granted]))] == want
