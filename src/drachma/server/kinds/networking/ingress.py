"""How requests from outside find services, as objects: nothing routes them here."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server.kinds.core import references
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject
from drachma.validation import ingress as rules
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
HTTPIngressPath: backend=IngressBackend! path=str pathType=str?
HTTPIngressRuleValue: paths=[HTTPIngressPath]!
Ingress: apiVersion=str kind=str metadata=ObjectMeta! spec=IngressSpec! status=IngressStatus!
IngressBackend: resource=TypedLocalObjectReference service=IngressServiceBackend
IngressLoadBalancerIngress: hostname=str ip=str ports=[IngressPortStatus]
IngressLoadBalancerStatus: ingress=[IngressLoadBalancerIngress]
IngressPortStatus: error=str? port=int32* protocol=str*
IngressRule: host=str http=HTTPIngressRuleValue^IngressRuleValue
IngressServiceBackend: name=str* port=ServiceBackendPort!
IngressSpec: defaultBackend=IngressBackend ingressClassName=str? rules=[IngressRule] tls=[IngressTLS]
IngressStatus: loadBalancer=IngressLoadBalancerStatus!
IngressTLS: hosts=[str] secretName=str
ServiceBackendPort!: name=str number=int32
"""
_NUMBERS: Final = """\
HTTPIngressPath: path backend pathType?
HTTPIngressRuleValue: paths
Ingress: metadata spec status
IngressBackend: 3:resource service
IngressLoadBalancerIngress: ip hostname 4:ports
IngressLoadBalancerStatus: ingress
IngressPortStatus: port protocol error?
IngressRule: host +IngressRuleValue
IngressRuleValue: http
IngressServiceBackend: name port
IngressSpec: defaultBackend tls rules ingressClassName?
IngressStatus: loadBalancer
IngressTLS: hosts secretName
ServiceBackendPort: name number
"""
_TEXTS: Final = """\
Ingress: How requests from outside find services.
IngressSpec.rules: Which requests go where.
IngressSpec.defaultBackend: Where requests go that no rule is about.
IngressSpec.ingressClassName: Who is to see to it.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.networking.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META, references.REFERENCES)
)


class IngressStrategy(DocumentStrategy):
    counts_generations = True
    rechecks_names = True

    def check_new(self, content: Document, subject: Subject) -> Errors:
        yield from rules.check(content.get("spec") or {})
        yield from rules.check_class(content.get("spec") or {}, subject.metadata.get("annotations") or {})

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from rules.check(content.get("spec") or {}, old.get("spec") or {})

    def warnings(self, content: Document, subject: Subject) -> Iterable[str]:
        noted = (subject.metadata.get("annotations") or {}).get(rules.CLASS_ANNOTATION)
        if noted is not None and (content.get("spec") or {}).get("ingressClassName") is None:
            yield (f"annotation \"{rules.CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead")

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from rules.check_status(content.get("status") or {}, old.get("status") or {})


def _cells(ingress: Document, now: datetime) -> layout.Cells:
    spec, status = cells.part(ingress, "spec"), cells.part(ingress, "status")
    hosts = [rule["host"] for rule in spec.get("rules") or () if rule.get("host")]
    points = cells.part(status, "loadBalancer").get("ingress") or ()
    addresses = sorted({each.get("ip") or each.get("hostname", "") for each in points} - {""})
    return [
        cells.name(ingress),
        spec.get("ingressClassName") or "<none>",
        cells.some(hosts) or "*",
        ",".join(addresses),
        "80, 443" if spec.get("tls") else "80",
        cells.since_creation(ingress, now),
    ]


KIND: Final = Kind(
    group="networking.k8s.io",
    versions=("v1",),
    plural="ingresses",
    kind="Ingress",
    namespaced=True,
    short_names=("ing",),
    subresources=(resources.status(),),
    schemas={"v1": _PACKAGE.object("Ingress")},
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Class", "Who is to see to it."),
            layout.text("Hosts", "Which hosts it is about."),
            layout.text("Address", "Where it is reached."),
            layout.text("Ports", "At which ports it is reached."),
            layout.AGE,
        ),
        _cells,
    ),
    strategy=IngressStrategy,
)
