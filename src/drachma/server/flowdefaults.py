"""The flow schemas and priority levels that a cluster begins with: upstream's, of which two of each must be there.

What is missing is made when a server begins; what is there stays as it is.
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
from drachma.validation import flowschema, prioritylevelconfiguration

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
"""Name, shares, how many of a hundred are lent, number of queues and size of a hand."""

_QUEUE_LENGTH: Final = 50


async def populate(dispatcher: Dispatcher) -> None:
    """Writes what is missing, all of it at once."""
    missing = [call for document in (*levels(), *schemas()) for call in _calls(dispatcher, document)]
    if missing:
        await dispatcher.dispatch_all(missing)


def _calls(dispatcher: Dispatcher, document: Document) -> Iterator[Call]:
    resource = dispatcher.surface.of_kind(_API_VERSION, document["kind"])
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
    for name, spec in prioritylevelconfiguration.MANDATORY.items():
        yield _made("PriorityLevelConfiguration", name, dict(spec))
    for name, shares, lendable, (queues, hand) in _LEVELS:
        queuing = {"queues": queues, "handSize": hand, "queueLengthLimit": _QUEUE_LENGTH}
        limited = {
            "nominalConcurrencyShares": shares,
            "lendablePercent": lendable,
            "limitResponse": {"type": "Queue", "queuing": queuing},
        }
        yield _made("PriorityLevelConfiguration", name, {"type": "Limited", "limited": limited})


def schemas() -> Iterator[Document]:
    """Yield the flow schemas."""
    for name, spec in flowschema.MANDATORY.items():
        yield _made("FlowSchema", name, dict(spec))
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
    return _made("FlowSchema", name, spec)


def _rule(verbs_: tuple[str, ...], group: str, *resources: str) -> Document:
    return {"verbs": verbs_, "apiGroups": [group], "resources": resources, "namespaces": _ALL}


def _groups(*names: str) -> list[Document]:
    return [{"kind": "Group", "group": {"name": name}} for name in names]


def _user(name: str) -> Document:
    return {"kind": "User", "user": {"name": name}}


def _made(kind: str, name: str, spec: Document) -> Document:
    metadata = {"name": name, "annotations": {_AUTOUPDATE: "true"}}
    return {"apiVersion": _API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}
