"""Which flow schema a request matches."""

from typing import Any

import pytest

from drachma.server import flowdefaults
from drachma.server.flowcontrol.classification import Classifier, Inquiry, parse_schema
from drachma.server.user import User
from drachma.validation import flowcontrol
from drachma.validation.path import ROOT

ALL = "system:authenticated"
ANN = User(name="ann", groups=("staff", ALL))
MASTER = User(name="root", groups=("system:masters", ALL))
NODE = User(name="system:node:n1", groups=("system:nodes", ALL))
SCHEDULER = User(name="system:kube-scheduler", groups=(ALL,))
SYSTEM_ACCOUNT = User(name="system:serviceaccount:kube-system:dns", groups=("system:serviceaccounts", ALL))
ACCOUNT = User(name="system:serviceaccount:default:app", groups=("system:serviceaccounts", ALL))
NOBODY = User(name="system:anonymous", groups=("system:unauthenticated",))

PODS = Inquiry("list", "", "pods", namespace="default")
OWN_LEASE = Inquiry("update", "coordination.k8s.io", "leases", namespace="kube-node-lease")
NODE_STATUS = Inquiry("patch", "", "nodes", "status")


def _defaults() -> Classifier:
    documents = list(flowdefaults.schemas())
    return Classifier(parse_schema(each["metadata"]["name"], "", each["spec"]) for each in documents)


@pytest.mark.parametrize(
    ("user", "inquiry", "want_schema"),
    [
        pytest.param(MASTER, PODS, "exempt", id="masters-are-exempt"),
        pytest.param(NOBODY, Inquiry("get", path="/healthz"), "probes", id="health-is-exempt"),
        pytest.param(NOBODY, Inquiry("get", path="/healthz/ping"), "global-default", id="one-check-of-health-is-not"),
        pytest.param(SCHEDULER, OWN_LEASE, "system-leader-election", id="leader-election"),
        pytest.param(SCHEDULER, PODS, "kube-scheduler", id="scheduler"),
        pytest.param(NODE, OWN_LEASE, "system-node-high", id="lease-of-a-node"),
        pytest.param(NODE, NODE_STATUS, "system-node-high", id="status-of-a-node"),
        pytest.param(NODE, PODS, "system-nodes", id="pods-of-a-node"),
        pytest.param(SYSTEM_ACCOUNT, PODS, "kube-system-service-accounts", id="account-of-kube-system"),
        pytest.param(ACCOUNT, PODS, "service-accounts", id="other-account"),
        pytest.param(ANN, PODS, "global-default", id="user"),
    ],
)
def test_default_schemas(user: User, inquiry: Inquiry, want_schema: str) -> None:
    schema = _defaults().classify(user, inquiry)
    assert schema is not None
    assert schema.name == want_schema


def _schema(name: str, *, precedence: int = 1000, subjects: list[Any] | None = None, **rules: Any) -> Any:
    group = {"kind": "Group", "group": {"name": ALL}}
    spec = {
        "priorityLevelConfiguration": {"name": "catch-all"},
        "matchingPrecedence": precedence,
        "rules": [{"subjects": subjects or [group], **rules}],
    }
    assert not list(flowcontrol.KINDS["FlowSchema"].always({"spec": spec}, ROOT, {"name": name}))
    return parse_schema(name, "", spec)


def _resources(**rule: Any) -> dict[str, Any]:
    return {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], **rule}


@pytest.mark.parametrize(
    ("rule", "inquiry", "want_match"),
    [
        pytest.param(_resources(), PODS, True, id="everything-in-namespaces"),
        pytest.param(_resources(), NODE_STATUS, False, id="cluster-scope-is-asked-for"),
        pytest.param(_resources(clusterScope=True), NODE_STATUS, True, id="cluster-scope"),
        pytest.param(_resources(verbs=["get"]), PODS, False, id="another-verb"),
        pytest.param(_resources(apiGroups=["apps"]), PODS, False, id="another-group"),
        pytest.param(_resources(resources=["pods/log"]), PODS, False, id="subresource-is-not-the-resource"),
        pytest.param(_resources(namespaces=["other"]), PODS, False, id="another-namespace"),
        pytest.param(_resources(namespaces=["default"]), PODS, True, id="the-namespace"),
        pytest.param(_resources(), Inquiry("get", path="/version"), False, id="path"),
    ],
)
def test_resource_rules(rule: dict[str, Any], inquiry: Inquiry, want_match: bool) -> None:
    classifier = Classifier([_schema("s", resourceRules=[rule])])
    assert (classifier.classify(ANN, inquiry) is not None) is want_match


@pytest.mark.parametrize(
    ("paths", "path", "want_match"),
    [
        pytest.param(["*"], "/version", True, id="every-path"),
        pytest.param(["/version"], "/version", True, id="the-path"),
        pytest.param(["/version"], "/version/x", False, id="below-the-path"),
        pytest.param(["/openapi/*"], "/openapi/v3", True, id="prefix"),
        pytest.param(["/openapi/*"], "/openapi", False, id="prefix-needs-its-slash"),
    ],
)
def test_path_rules(paths: list[str], path: str, want_match: bool) -> None:
    classifier = Classifier([_schema("s", nonResourceRules=[{"verbs": ["*"], "nonResourceURLs": paths}])])
    assert (classifier.classify(ANN, Inquiry("get", path=path)) is not None) is want_match


def test_lowest_precedence_counts_and_then_the_name() -> None:
    rules = {"resourceRules": [_resources()]}
    names = [("c", 5), ("b", 5), ("a", 9)]
    schemas = [_schema(name, precedence=precedence, **rules) for name, precedence in names]
    schema = Classifier(schemas).classify(ANN, PODS)
    assert schema is not None
    assert schema.name == "b"
