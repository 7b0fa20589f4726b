"""Which pods may talk to which, as objects: nothing enforces it here."""

from datetime import datetime
from typing import Final

from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject
from drachma.validation import networkpolicy
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
IPBlock: cidr=str* except=[str]
NetworkPolicy: apiVersion=str kind=str metadata=ObjectMeta! spec=NetworkPolicySpec!
NetworkPolicyEgressRule: ports=[NetworkPolicyPort] to=[NetworkPolicyPeer]
NetworkPolicyIngressRule: from=[NetworkPolicyPeer] ports=[NetworkPolicyPort]
NetworkPolicyPeer: ipBlock=IPBlock namespaceSelector=LabelSelector podSelector=LabelSelector
NetworkPolicyPort: endPort=int32? port=IntOrString protocol=str?
NetworkPolicySpec: egress=[NetworkPolicyEgressRule] ingress=[NetworkPolicyIngressRule] podSelector=LabelSelector!
    policyTypes=[str]
"""
_NUMBERS: Final = """\
IPBlock: cidr except
NetworkPolicy: metadata spec
NetworkPolicyEgressRule: ports to
NetworkPolicyIngressRule: ports from
NetworkPolicyPeer: podSelector namespaceSelector ipBlock
NetworkPolicyPort: protocol? port endPort?
NetworkPolicySpec: podSelector ingress egress policyTypes
"""
_TEXTS: Final = """\
NetworkPolicy: Which pods may talk to which.
NetworkPolicySpec.podSelector: The pods that it is about.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.networking.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META,)
)


class NetworkPolicyStrategy(DocumentStrategy):
    counts_generations = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        spec = content["spec"] = dict(content.get("spec") or {})
        spec.setdefault("podSelector", {})
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
        for direction in ("ingress", "egress"):
            if spec.get(direction):
                spec[direction] = [_with_protocols(rule) for rule in spec[direction]]

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from networkpolicy.check(content["spec"])


def _with_protocols(rule: Document) -> Document:
    if not rule.get("ports"):
        return rule
    return {**rule, "ports": [{"protocol": "TCP", **port} for port in rule["ports"]]}


def _cells(policy: Document, now: datetime) -> layout.Cells:
    chosen = cells.selector(cells.part(policy, "spec").get("podSelector")) or "<none>"
    return [cells.name(policy), chosen, cells.since_creation(policy, now)]


KIND: Final = Kind(
    group="networking.k8s.io",
    versions=("v1",),
    plural="networkpolicies",
    kind="NetworkPolicy",
    namespaced=True,
    short_names=("netpol",),
    schemas={"v1": _PACKAGE.object("NetworkPolicy")},
    layout=layout.Layout((layout.NAME, layout.text("Pod-Selector", "The pods that it is about."), layout.AGE), _cells),
    strategy=NetworkPolicyStrategy,
)
