"""Services: names and addresses for pods, as objects; nothing routes to them here.

Addresses are given out of a range, as a cluster does, so that what is made of a service looks as it does there.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import objectmeta, status
from drachma.server.kinds.core import clusterips
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout, resources, selectable
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Environment, Subject, Write
from drachma.validation import fielderror, service, serviceaddresses
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC

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
_AFFINITY_SECONDS: Final = 10800
_ON_NODES: Final = ("NodePort", "LoadBalancer")


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
        if spec["sessionAffinity"] == "None":
            spec.pop("sessionAffinityConfig", None)
        if spec["sessionAffinity"] == "ClientIP":
            given = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
            seconds = given.get("timeoutSeconds")
            whole = {**given, "timeoutSeconds": _AFFINITY_SECONDS if seconds is None else seconds}
            spec["sessionAffinityConfig"] = {"clientIP": whole}
        if spec.get("ports"):
            spec["ports"] = [_whole_port(port) for port in spec["ports"]]
        if service.is_open(spec) and not spec.get("externalTrafficPolicy"):
            spec["externalTrafficPolicy"] = "Cluster"
        if spec["type"] in ("ClusterIP", *_ON_NODES) and spec.get("internalTrafficPolicy") is None:
            spec["internalTrafficPolicy"] = "Cluster"
        if spec["type"] == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is None:
            spec["allocateLoadBalancerNodePorts"] = True

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["status"] = {"loadBalancer": {}}
        spec = content["spec"] = dict(content["spec"])
        self._assign(spec, metadata)

    def prepare_update(self, content: Document, old: Mapping[str, Any], write: Write) -> None:
        super().prepare_update(content, old, write)
        before = old.get("spec") or {}
        spec = content["spec"] = _kept(dict(content["spec"]), before)
        spec = content["spec"] = _without_unneeded(spec, before)
        if spec["type"] != "LoadBalancer":
            content["status"] = {**(content.get("status") or {}), "loadBalancer": {}}
        self._assign(spec, {"namespace": write.namespace, "name": write.name})

    def check_new(self, content: Document, subject: Subject) -> Errors:
        unreadable = list(serviceaddresses.unreadable(content["spec"]))
        if unreadable:
            yield from unreadable
            return
        yield from service.check(content["spec"], subject.metadata.get("annotations") or {}, {}, notes={})
        yield from self._check_node_ports(content["spec"], {})

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        before = old.get("spec") or {}
        notes = subject.metadata.get("annotations") or {}
        yield from service.check_update(content["spec"], before)
        yield from service.check(content["spec"], notes, before, notes=notes)
        yield from self._check_node_ports(content["spec"], before)

    def warnings(self, content: Document, subject: Subject) -> Iterable[str]:
        yield from service.warnings(content["spec"], subject.metadata.get("annotations") or {})

    def _assign(self, spec: Document, metadata: Mapping[str, Any]) -> None:
        """Fills in addresses, families and ports, in place, where the service lacks what it needs."""
        name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
        if spec["type"] != "ExternalName":
            if spec.get("clusterIP") and not spec.get("clusterIPs"):
                spec["clusterIPs"] = [spec["clusterIP"]]
            if not spec.get("clusterIP") and not spec.get("clusterIPs"):
                spec["clusterIP"] = self._addresses.free(name)
                spec["clusterIPs"] = [spec["clusterIP"]]
            # A service without pods and addresses of its own can be anything.
            is_any = serviceaddresses.is_headless(spec) and not spec.get("selector")
            if not spec.get("ipFamilies") and spec["clusterIPs"]:
                first = serviceaddresses.family(spec["clusterIPs"][0])
                spec["ipFamilies"] = ["IPv4", "IPv6"] if is_any else [first]
            if spec.get("ipFamilyPolicy") is None:
                spec["ipFamilyPolicy"] = "RequireDualStack" if is_any else "SingleStack"
        wants_ports = spec["type"] == "NodePort" or (
            spec["type"] == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False
        )
        free = self._addresses.free_ports(name, but=tuple(clusterips.node_ports(spec)))
        if wants_ports and spec.get("ports"):
            spec["ports"] = [
                port if port.get("nodePort") else {**port, "nodePort": _next(free)} for port in spec["ports"]
            ]
        if service.needs_health_check(spec) and not spec.get("healthCheckNodePort"):
            spec["healthCheckNodePort"] = _next(free)

    def _check_node_ports(self, spec: Document, old: Mapping[str, Any]) -> Errors:
        """Ports on nodes that are asked for must be to be had."""
        if spec["type"] not in _ON_NODES:
            return
        before = set(clusterips.node_ports(old))
        taken = set(self._addresses.ports()) - before
        places = [(SPEC.child("ports").item(i).child("nodePort"), p) for i, p in enumerate(spec.get("ports") or ())]
        asked = [(at, port["nodePort"]) for at, port in places if port.get("nodePort")]
        if spec.get("healthCheckNodePort"):
            asked.append((SPEC.child("healthCheckNodePort"), spec["healthCheckNodePort"]))
        for at, number in asked:
            if number in before:
                continue
            if number not in clusterips.NODE_PORTS:
                first, last = clusterips.NODE_PORTS[0], clusterips.NODE_PORTS[-1]
                detail = f"provided port is not in the valid range. The range of valid ports is {first}-{last}"
                yield fielderror.invalid(at, number, detail)
            elif number in taken:
                yield fielderror.invalid(at, number, "provided port is already allocated")


def _next(free: Iterator[int]) -> int:
    port = next(free, None)
    if port is None:
        raise status.internal("failed to allocate a nodePort: range is full")
    return port


def _kept(spec: Document, old: Mapping[str, Any]) -> Document:
    """A spec with what the server gave to the service, where an update says nothing of it."""
    if "ExternalName" not in (spec["type"], old.get("type")):
        for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if not spec.get(field) and old.get(field):
                spec[field] = old[field]
    if spec["type"] in _ON_NODES and old.get("type") in _ON_NODES and spec.get("ports"):
        given = {(port.get("protocol"), port.get("port")): port.get("nodePort") for port in old.get("ports") or ()}
        spec["ports"] = [
            {**port, "nodePort": number}
            if not port.get("nodePort") and (number := given.get((port.get("protocol"), port.get("port"))))
            else port
            for port in spec["ports"]
        ]
    if service.needs_health_check(spec) and service.needs_health_check(old) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = old.get("healthCheckNodePort", 0)
    return spec


def _without_unneeded(spec: Document, old: Mapping[str, Any]) -> Document:
    """A spec without what its new type does not have, where nobody asked for anything else."""
    dropped: list[str] = []
    if spec["type"] == "ExternalName" != old.get("type"):
        if all((spec.get(field) or None) == (old.get(field) or None) for field in ("clusterIP", "clusterIPs")):
            dropped += ["clusterIP", "clusterIPs"]
        dropped += [field for field in ("ipFamilies", "ipFamilyPolicy") if spec.get(field) == old.get(field)]
    if old.get("type") in _ON_NODES and spec["type"] not in _ON_NODES:
        ports = {port.get("nodePort") for port in spec.get("ports") or ()} - {None, 0}
        if ports <= set(clusterips.node_ports(old)):
            spec["ports"] = [
                {field: value for field, value in port.items() if field != "nodePort"}
                for port in spec.get("ports") or ()
            ]
    if service.needs_health_check(old) and not service.needs_health_check(spec):
        dropped += ["healthCheckNodePort"] if _is_same(spec, old, "healthCheckNodePort") else []
    if old.get("type") == "LoadBalancer" != spec["type"]:
        fields = ("allocateLoadBalancerNodePorts", "loadBalancerClass")
        dropped += [field for field in fields if _is_same(spec, old, field)]
    if service.is_open(old) and not service.is_open(spec) and _is_same(spec, old, "externalTrafficPolicy"):
        dropped.append("externalTrafficPolicy")
    return {field: value for field, value in spec.items() if field not in dropped}


def _is_same(spec: Document, old: Mapping[str, Any], field: str) -> bool:
    return spec.get(field) == old.get(field)


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
    traits=resources.Traits(creates_on_update=True),
    selectable=selectable.Selectable(
        fields=frozenset({selectable.NAME, selectable.NAMESPACE, "spec.clusterIP", "spec.type"}),
        unknown=selectable.unknown_in_core,
    ),
    strategy=ServiceStrategy,
)
