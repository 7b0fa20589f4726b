"""Upstream's initial flow schemas and priority levels; two of each are mandatory.

Missing ones are created when a server starts; existing ones stay as they are.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from drachma.server import mediatypes
from drachma.server.calls.call import Body, Call, Target
from drachma.server.pipeline.dispatcher import Dispatcher
from drachma.server.surface import verbs
from drachma.server.user import User
from drachma.store import record
from drachma.validation import flowcontrol

Document = dict[str, Any]

_GROUP: Final = "flowcontrol.apiserver.k8s.io"
_API_VERSION: Final = f"{_GROUP}/v1"
_AUTOUPDATE: Final = "apf.kubernetes.io/autoupdate-spec"
_SERVER: Final = User(name="system:apiserver", groups=("system:masters",))
_ALL: Final = ("*",)
_EVERYTHING: Final = {
    "resourceRules": [
        {"verbs": _ALL, "apiGroups": _ALL, "resources": _ALL, "clusterScope": True, "namespaces": _ALL},
    ],
    "nonResourceRules": [{"verbs": _ALL, "nonResourceURLs": _ALL}],
}
_EVERYBODY: Final = ("system:unauthenticated", "system:authenticated")

_LEVELS: Final = (
    ("system", 30, 33, (64, 6)),
    ("node-high", 40, 25, (64, 6)),
    ("leader-election", 10, 0, (16, 4)),
    ("workload-high", 40, 50, (128, 6)),
    ("workload-low", 100, 90, (128, 6)),
    ("global-default", 20, 50, (128, 6)),
)
"""Name, shares, percentage that is lent, number of queues, and hand size."""

_QUEUE_LENGTH: Final = 50


async def populate(dispatcher: Dispatcher) -> None:
    """Create all missing objects in one commit."""
    calls = [call for document in (*levels(), *schemas()) for call in _calls(dispatcher, document)]
    if calls:
        await dispatcher.dispatch_all(calls)


def _calls(dispatcher: Dispatcher, document: Document) -> Iterator[Call]:
    resource = dispatcher.surface.find_kind(_API_VERSION, document["kind"])
    assert resource is not None, "both kinds are served"
    if dispatcher.services.store.get(record.Key(resource.key, "", document["metadata"]["name"])) is None:
        yield Call(
            user=_SERVER,
            verb=verbs.CREATE,
            surface=dispatcher.surface,
            target=Target(resource, "v1", "", "", None),
            body=Body(msgspec.json.encode(document), mediatypes.JSON),
            user_agent="drachma",
        )


def levels() -> Iterator[Document]:
    """Yield the priority levels."""
    for name, spec in flowcontrol.MANDATORY_LEVELS.items():
        yield _make_document("PriorityLevelConfiguration", name, dict(spec))
    for name, shares, lendable, (queues, hand) in _LEVELS:
        queuing = {"queues": queues, "handSize": hand, "queueLengthLimit": _QUEUE_LENGTH}
        limited = {
            "nominalConcurrencyShares": shares,
            "lendablePercent": lendable,
            "limitResponse": {"type": "Queue", "queuing": queuing},
        }
        yield _make_document("PriorityLevelConfiguration", name, {"type": "Limited", "limited": limited})


def schemas() -> Iterator[Document]:
    """Yield the flow schemas."""
    for name, spec in flowcontrol.MANDATORY_SCHEMAS.items():
        yield _make_document("FlowSchema", name, dict(spec))
    probes = {"nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}]}
    accounts = {"kind": "ServiceAccount", "serviceAccount": {"name": "*", "namespace": "kube-system"}}
    leases = _rule(("get", "create", "update"), "coordination.k8s.io", "leases")
    manager, scheduler = _user("system:kube-controller-manager"), _user("system:kube-scheduler")
    nodes = [
        {**_rule(_ALL, "", "nodes", "nodes/status"), "clusterScope": True},
        _rule(_ALL, "coordination.k8s.io", "leases"),
    ]
    yield _schema("probes", "exempt", 2, "", _groups(*_EVERYBODY), probes)
    yield _schema(
        "system-leader-election",
        "leader-election",
        100,
        "ByUser",
        [manager, scheduler, accounts],
        {"resourceRules": [leases]},
    )
    yield _schema("system-node-high", "node-high", 400, "ByUser", _groups("system:nodes"), {"resourceRules": nodes})
    yield _schema("system-nodes", "system", 500, "ByUser", _groups("system:nodes"), _EVERYTHING)
    yield _schema("kube-controller-manager", "workload-high", 800, "ByNamespace", [manager], _EVERYTHING)
    yield _schema("kube-scheduler", "workload-high", 800, "ByNamespace", [scheduler], _EVERYTHING)
    yield _schema("kube-system-service-accounts", "workload-high", 900, "ByNamespace", [accounts], _EVERYTHING)
    yield _schema("service-accounts", "workload-low", 9000, "ByUser", _groups("system:serviceaccounts"), _EVERYTHING)
    yield _schema("global-default", "global-default", 9900, "ByUser", _groups(*_EVERYBODY), _EVERYTHING)


def _schema(name: str, level: str, precedence: int, method: str, subjects: list[Document], rules: Document) -> Document:
    spec: Document = {
        "priorityLevelConfiguration": {"name": level},
        "matchingPrecedence": precedence,
        "rules": [{"subjects": subjects, **rules}],
    }
    if method:
        spec["distinguisherMethod"] = {"type": method}
    return _make_document("FlowSchema", name, spec)


def _rule(verbs_: tuple[str, ...], group: str, *resources: str) -> Document:
    return {"verbs": verbs_, "apiGroups": [group], "resources": resources, "namespaces": _ALL}


def _groups(*names: str) -> list[Document]:
    return [{"kind": "Group", "group": {"name": name}} for name in names]


def _user(name: str) -> Document:
    return {"kind": "User", "user": {"name": name}}


def _make_document(kind: str, name: str, spec: Document) -> Document:
    metadata = {"name": name, "annotations": {_AUTOUPDATE: "true"}}
    return {"apiVersion": _API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}
