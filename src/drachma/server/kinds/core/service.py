"""Services. Nothing routes to them here, but they get cluster IPs and node ports as in a real cluster."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import objectmeta, status
from drachma.server.kinds.core import clusterips, connections
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.surface import cells, layout, resources, selectable
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Environment, Subject, Write
from drachma.validation import fielderror, service, serviceaddresses
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC

_AFFINITY_SECONDS: Final = 10800
_ON_NODES: Final = ("NodePort", "LoadBalancer")


class ServiceStrategy(DocumentStrategy):
    name_rule = staticmethod(service.name_problems)

    def __init__(self, resource: resources.Resource, environment: Environment) -> None:
        super().__init__(resource, environment)
        self._addresses = clusterips.Addresses(environment.store, environment.service_ranges)

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        spec = content["spec"] = dict(content.get("spec") or {})
        for field, value in (("sessionAffinity", "None"), ("type", "ClusterIP")):
            if not spec.get(field):
                spec[field] = value
        if spec["sessionAffinity"] == "None":
            spec.pop("sessionAffinityConfig", None)
        if spec["sessionAffinity"] == "ClientIP":
            client_ip = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
            seconds = client_ip.get("timeoutSeconds")
            affinity = {**client_ip, "timeoutSeconds": _AFFINITY_SECONDS if seconds is None else seconds}
            spec["sessionAffinityConfig"] = {"clientIP": affinity}
        if spec.get("ports"):
            spec["ports"] = [_default_port(port) for port in spec["ports"]]
        if service.is_external(spec) and not spec.get("externalTrafficPolicy"):
            spec["externalTrafficPolicy"] = "Cluster"
        if spec["type"] in ("ClusterIP", *_ON_NODES) and spec.get("internalTrafficPolicy") is None:
            spec["internalTrafficPolicy"] = "Cluster"
        if spec["type"] == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is None:
            spec["allocateLoadBalancerNodePorts"] = True

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["status"] = {"loadBalancer": {}}
        spec = content["spec"] = dict(content["spec"])
        self._assign(spec, metadata, {})

    def prepare_update(self, content: Document, old: Mapping[str, Any], write: Write) -> None:
        super().prepare_update(content, old, write)
        before = old.get("spec") or {}
        spec = content["spec"] = _keep_allocated(dict(content["spec"]), before)
        spec = content["spec"] = _drop_unneeded(spec, before)
        if spec["type"] != "LoadBalancer":
            content["status"] = {**(content.get("status") or {}), "loadBalancer": {}}
        self._assign(spec, {"namespace": write.namespace, "name": write.name}, before)

    def check_new(self, content: Document, subject: Subject) -> Errors:
        unallocatable = list(serviceaddresses.unallocatable(content["spec"], self._addresses.ranges.families))
        if unallocatable:
            yield from unallocatable
            return
        yield from service.check(content["spec"], service.Facts(subject.metadata.get("annotations") or {}))
        yield from self._check_node_ports(content["spec"], {})

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        before = old.get("spec") or {}
        annotations = subject.metadata.get("annotations") or {}
        if content["spec"] != before:
            yield from serviceaddresses.unallocatable_families(content["spec"], self._addresses.ranges.families)
        yield from service.check_update(content["spec"], before)
        yield from service.check(content["spec"], service.Facts(annotations, before, annotations))
        yield from self._check_node_ports(content["spec"], before)

    def warnings(self, content: Document, subject: Subject) -> Iterable[str]:
        yield from service.warnings(content["spec"], subject.metadata.get("annotations") or {})

    def _assign(self, spec: Document, metadata: Mapping[str, Any], old: Mapping[str, Any]) -> None:
        """Allocate missing addresses, IP families and ports, in place."""
        name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
        if spec["type"] != "ExternalName":
            if spec.get("clusterIP") and not spec.get("clusterIPs"):
                spec["clusterIPs"] = [spec["clusterIP"]]
            self._assign_families(spec, old)
            addresses: list[str] = list(spec.get("clusterIPs") or ())
            if not serviceaddresses.is_headless(spec) and not (addresses and not spec.get("clusterIP")):
                missing = [
                    each for each in spec["ipFamilies"][len(addresses) :] if each in self._addresses.ranges.families
                ]
                spec["clusterIPs"] = [*addresses, *(self._addresses.free(name, each) for each in missing)]
                if not spec.get("clusterIP") and spec["clusterIPs"]:
                    spec["clusterIP"] = spec["clusterIPs"][0]
        wants_ports = spec["type"] == "NodePort" or (
            spec["type"] == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False
        )
        free = self._addresses.free_ports(name, excluded=tuple(clusterips.node_ports(spec)))
        if wants_ports and spec.get("ports"):
            spec["ports"] = [
                port if port.get("nodePort") else {**port, "nodePort": _next(free)} for port in spec["ports"]
            ]
        if service.needs_health_check(spec) and not spec.get("healthCheckNodePort"):
            spec["healthCheckNodePort"] = _next(free)

    def _assign_families(self, spec: Document, old: Mapping[str, Any]) -> None:
        """Complete the IP families and their policy as upstream does, in place."""
        addresses: list[str] = spec.get("clusterIPs") or []
        families: list[str] = list(spec.get("ipFamilies") or ())
        is_headless, configured = serviceaddresses.is_headless(spec), self._addresses.ranges.families
        if not is_headless:
            families += map(serviceaddresses.family, addresses[len(families) :])
        # A headless service without a selector may have any family.
        is_any = is_headless and not spec.get("selector")
        if spec.get("ipFamilyPolicy") is None:
            is_dual = is_any or len(addresses) > 1 or len(families) > 1
            spec["ipFamilyPolicy"] = "RequireDualStack" if is_dual else "SingleStack"
        families = families or [configured[0]]
        fields = ("ipFamilyPolicy", "ipFamilies", "clusterIPs")
        is_as_before = bool(old) and all(spec.get(field) == old.get(field) for field in fields)
        can_grow = is_any or (len(configured) > 1 and not is_as_before)
        if spec["ipFamilyPolicy"] != "SingleStack" and len(families) == 1 and can_grow:
            families.append("IPv6" if families[0] == "IPv4" else "IPv4")
        spec["ipFamilies"] = families

    def _check_node_ports(self, spec: Document, old: Mapping[str, Any]) -> Errors:
        """Yield the problems of requested node ports: out of range, or already allocated."""
        if spec["type"] not in _ON_NODES:
            return
        before = set(clusterips.node_ports(old))
        used = set(self._addresses.ports()) - before
        places = [(SPEC.child("ports").item(i).child("nodePort"), p) for i, p in enumerate(spec.get("ports") or ())]
        requested = [(at, port["nodePort"]) for at, port in places if port.get("nodePort")]
        if spec.get("healthCheckNodePort"):
            requested.append((SPEC.child("healthCheckNodePort"), spec["healthCheckNodePort"]))
        for at, number in requested:
            if number in before:
                continue
            if number not in clusterips.NODE_PORTS:
                first, last = clusterips.NODE_PORTS[0], clusterips.NODE_PORTS[-1]
                detail = f"provided port is not in the valid range. The range of valid ports is {first}-{last}"
                yield fielderror.invalid(at, number, detail)
            elif number in used:
                yield fielderror.invalid(at, number, "provided port is already allocated")


def _next(free: Iterator[int]) -> int:
    port = next(free, None)
    if port is None:
        raise status.internal("failed to allocate a nodePort: range is full")
    return port


def _keep_allocated(spec: Document, old: Mapping[str, Any]) -> Document:
    """Return a spec with the allocated values of the old spec where the update has none."""
    if "ExternalName" not in (spec["type"], old.get("type")):
        for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if not spec.get(field) and old.get(field):
                spec[field] = old[field]
        is_downgrade = spec.get("ipFamilyPolicy") == "SingleStack" != old.get("ipFamilyPolicy")
        for field in ("clusterIPs", "ipFamilies"):
            if is_downgrade and len(spec.get(field) or ()) > 1 and spec[field] == old.get(field):
                spec[field] = spec[field][:1]
    if spec["type"] in _ON_NODES and old.get("type") in _ON_NODES and spec.get("ports"):
        old_ports = {(port.get("protocol"), port.get("port")): port.get("nodePort") for port in old.get("ports") or ()}
        spec["ports"] = [
            {**port, "nodePort": number}
            if not port.get("nodePort") and (number := old_ports.get((port.get("protocol"), port.get("port"))))
            else port
            for port in spec["ports"]
        ]
    if service.needs_health_check(spec) and service.needs_health_check(old) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = old.get("healthCheckNodePort", 0)
    return spec


def _drop_unneeded(spec: Document, old: Mapping[str, Any]) -> Document:
    """Return a spec without the fields that its new type does not have, unless the update changes them."""
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
    if service.is_external(old) and not service.is_external(spec) and _is_same(spec, old, "externalTrafficPolicy"):
        dropped.append("externalTrafficPolicy")
    return {field: value for field, value in spec.items() if field not in dropped}


def _is_same(spec: Document, old: Mapping[str, Any], field: str) -> bool:
    return spec.get(field) == old.get(field)


def _default_port(port: Document) -> Document:
    completed = {**port, "protocol": port.get("protocol") or "TCP"}
    if completed.get("targetPort") in (None, 0, ""):
        completed["targetPort"] = completed.get("port", 0)
    return completed


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
        _external_addresses(spec, cells.part(each, "status")),
        ",".join(ports) or "<none>",
        cells.since_creation(each, now),
        selector or "<none>",
    ]


def _external_addresses(spec: Document, status: Document) -> str:
    """Return the cell with the external addresses of a service."""
    addresses = ",".join(spec.get("externalIPs") or ())
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", ""))
    if spec.get("type") == "LoadBalancer":
        ingress = cells.part(status, "loadBalancer").get("ingress") or ()
        ingress_addresses = ",".join(each.get("ip") or each.get("hostname", "") for each in ingress)
        return ",".join(filter(None, (ingress_addresses, addresses))) or "<pending>"
    return addresses or "<none>"


KIND: Final = Kind(
    group="",
    versions=("v1",),
    plural="services",
    kind="Service",
    namespaced=True,
    short_names=("svc",),
    categories=("all",),
    subresources=(connections.SERVICE_PROXY, resources.status()),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Type", "The type of the service."),
            layout.text("Cluster-IP", "Its address inside of the cluster."),
            layout.text("External-IP", "Its address outside of the cluster."),
            layout.text("Port(s)", "Its ports."),
            layout.AGE,
            layout.wide("Selector", "The labels of the pods."),
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
