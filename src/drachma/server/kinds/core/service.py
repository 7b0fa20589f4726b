"""Services: names and addresses for pods, as objects; nothing routes to them here.

Addresses are given out of a range, as a cluster does, so that what is made of a service looks as it does there.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import objectmeta
from drachma.server.kinds.core import clusterips
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout, resources, selectable
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Environment, Subject, Write
from drachma.validation import service
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
ClientIPConfig: timeoutSeconds=int32?
LoadBalancerIngress: hostname=str ip=str ipMode=str? ports=[PortStatus]
LoadBalancerStatus: ingress=[LoadBalancerIngress]
PortStatus: error=str? port=int32* protocol=str*
Service: apiVersion=str kind=str metadata=ObjectMeta! spec=ServiceSpec! status=ServiceStatus!
ServicePort: appProtocol=str? name=str nodePort=int32 port=int32* protocol=str/TCP targetPort=IntOrString
ServiceSpec: allocateLoadBalancerNodePorts=bool? clusterIP=str clusterIPs=[str] externalIPs=[str] externalName=str
    externalTrafficPolicy=str healthCheckNodePort=int32 internalTrafficPolicy=str? ipFamilies=[str]
    ipFamilyPolicy=str? loadBalancerClass=str? loadBalancerIP=str loadBalancerSourceRanges=[str]
    ports={ServicePort:port,protocol}~ publishNotReadyAddresses=bool selector=<<str>> sessionAffinity=str
    sessionAffinityConfig=SessionAffinityConfig trafficDistribution=str? type=str
ServiceStatus: conditions={Condition:type}~ loadBalancer=LoadBalancerStatus!
SessionAffinityConfig: clientIP=ClientIPConfig
"""
_NUMBERS: Final = """\
ClientIPConfig: timeoutSeconds?
LoadBalancerIngress: ip hostname ipMode? ports
LoadBalancerStatus: ingress
PortStatus: port protocol error?
Service: metadata spec status
ServicePort: name protocol port targetPort nodePort appProtocol?
ServiceSpec: ports selector clusterIP type externalIPs 7:sessionAffinity loadBalancerIP loadBalancerSourceRanges
    externalName externalTrafficPolicy healthCheckNodePort publishNotReadyAddresses sessionAffinityConfig
    17:ipFamilyPolicy? clusterIPs ipFamilies allocateLoadBalancerNodePorts? loadBalancerClass? internalTrafficPolicy?
    trafficDistribution?
ServiceStatus: loadBalancer conditions
SessionAffinityConfig: clientIP
"""
_TEXTS: Final = """\
Service: A name and an address for pods.
ServiceSpec.selector: Which pods it stands for.
ServiceSpec.ports: Where they are reached.
ServiceSpec.type: Who can reach them.
"""
_PACKAGE: Final = notation.Types("io.k8s.api.core.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META,))
_OUTSIDE: Final = ("NodePort", "LoadBalancer")
_AFFINITY_SECONDS: Final = 10800


class ServiceStrategy(DocumentStrategy):
    name_rule = staticmethod(service.name_problems)

    def __init__(self, resource: resources.Resource, environment: Environment) -> None:
        super().__init__(resource, environment)
        self._addresses = clusterips.Addresses(environment.store)

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        spec = content["spec"] = dict(content.get("spec") or {})
        for field, value in (("sessionAffinity", "None"), ("type", "ClusterIP")):
            if not spec.get(field):
                spec[field] = value
        if spec["sessionAffinity"] == "ClientIP":
            spec.setdefault("sessionAffinityConfig", {"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}})
        if spec.get("ports"):
            spec["ports"] = [_whole_port(port) for port in spec["ports"]]
        if spec["type"] in _OUTSIDE and not spec.get("externalTrafficPolicy"):
            spec["externalTrafficPolicy"] = "Cluster"
        if spec["type"] != "ExternalName" and not spec.get("internalTrafficPolicy"):
            spec["internalTrafficPolicy"] = "Cluster"
        if spec["type"] == "LoadBalancer":
            spec.setdefault("allocateLoadBalancerNodePorts", True)

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["status"] = {"loadBalancer": {}}
        spec = content["spec"] = dict(content["spec"])
        if spec["type"] != "ExternalName":
            name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
            _give_address(spec, lambda: self._addresses.free(name))

    def prepare_update(self, content: Document, old: Mapping[str, Any], write: Write) -> None:
        super().prepare_update(content, old, write)
        spec, before = dict(content["spec"]), old.get("spec") or {}
        if spec["type"] != "ExternalName" and before.get("type") != "ExternalName":
            for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
                if not spec.get(field) and before.get(field):
                    spec[field] = before[field]
        content["spec"] = spec

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from service.check(content["spec"])

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from service.check_update(content["spec"], old.get("spec") or {})


def _give_address(spec: Document, free: Any) -> None:
    """Fills in addresses and families of a new service, in place."""
    if not spec.get("clusterIP") and spec.get("clusterIPs"):
        spec["clusterIP"] = spec["clusterIPs"][0]
    if not spec.get("clusterIP"):
        spec["clusterIP"] = free()
    if not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    if not spec.get("ipFamilies"):
        spec["ipFamilies"] = ["IPv6" if ":" in spec["clusterIP"] else "IPv4"]
    if not spec.get("ipFamilyPolicy"):
        spec["ipFamilyPolicy"] = "SingleStack"


def _whole_port(port: Document) -> Document:
    whole = {**port, "protocol": port.get("protocol") or "TCP"}
    if whole.get("targetPort") in (None, 0, ""):
        whole["targetPort"] = whole.get("port", 0)
    return whole


def _cells(each: Document, now: datetime) -> layout.Cells:
    spec = cells.part(each, "spec")
    ports = [
        f"{port.get('port', 0)}{':' + str(port['nodePort']) if port.get('nodePort') else ''}/{port.get('protocol', '')}"
        for port in spec.get("ports") or ()
    ]
    selector = ",".join(f"{key}={value}" for key, value in sorted(cells.part(spec, "selector").items()))
    return [
        cells.name(each),
        spec.get("type", ""),
        spec.get("clusterIP") or "<none>",
        _outside(spec, cells.part(each, "status")),
        ",".join(ports) or "<none>",
        cells.since_creation(each, now),
        selector or "<none>",
    ]


def _outside(spec: Document, status: Document) -> str:
    """Where a service is reached from outside of the cluster."""
    addresses = ",".join(spec.get("externalIPs") or ())
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", ""))
    if spec.get("type") == "LoadBalancer":
        given = cells.part(status, "loadBalancer").get("ingress") or ()
        shown = ",".join(each.get("ip") or each.get("hostname", "") for each in given)
        return ",".join(filter(None, (shown, addresses))) or "<pending>"
    return addresses or "<none>"


KIND: Final = Kind(
    group="",
    versions=("v1",),
    plural="services",
    kind="Service",
    namespaced=True,
    short_names=("svc",),
    categories=("all",),
    subresources=(resources.status(),),
    schemas={"v1": _PACKAGE.object("Service")},
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Type", "Who can reach it."),
            layout.text("Cluster-IP", "Its address inside of the cluster."),
            layout.text("External-IP", "Its address outside of the cluster."),
            layout.text("Port(s)", "Its ports."),
            layout.AGE,
            layout.wide("Selector", "Which pods it stands for."),
        ),
        _cells,
    ),
    selectable=selectable.Selectable(
        fields=frozenset({selectable.NAME, selectable.NAMESPACE, "spec.clusterIP", "spec.type"}),
        unknown=selectable.unknown_in_core,
    ),
    strategy=ServiceStrategy,
)
