"""Rules for Service. The rules for its addresses are in :mod:`drachma.validation.serviceaddresses`."""

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from drachma.validation import (
    collection,
    constraints,
    endpoints,
    fielderror,
    rendering,
    rulenotation,
    serviceaddresses,
    typerules,
)
from drachma.validation.fielderror import Errors, FieldError, Found
from drachma.validation.path import METADATA, SPEC, Document, Path
from drachma.values import names

_ONLY_BALANCERS: Final = "may only be used when `type` is 'LoadBalancer'"
_RANGES: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"
_HINTS: Final = "service.kubernetes.io/topology-aware-hints"
_MODE: Final = "service.kubernetes.io/topology-mode"


class Facts(msgspec.Struct, frozen=True):
    """Annotations of a service, and what is stored: its old spec and annotations, empty for a new one."""

    annotations: Mapping[str, str] = {}
    old: Document = {}
    old_annotations: Mapping[str, str] = {}


def name_problems(name: str, *, is_prefix: bool) -> Sequence[str]:
    """Return what keeps a name from being that of a service: it must be a DNS label."""
    return names.dns1123_label(names.mask_trailing_dash(name) if is_prefix else name)


def is_external(spec: Document) -> bool:
    """Return True if clients outside of the cluster can reach a service."""
    kind = spec.get("type")
    return kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def needs_health_check(spec: Document) -> bool:
    """Return True if load balancers must find out which nodes have pods."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def check(spec: Document, facts: Facts) -> list[FieldError]:
    """Return the errors of a service; addresses and annotations that it had before may stay."""
    return _TYPES["ServiceSpec"](spec, SPEC, facts)


def check_update(spec: Document, old: Document) -> Errors:
    """Yield the errors of an update: addresses, and fields that the load balancer relies on, stay as they are."""
    yield from serviceaddresses.check_update(spec, old)
    kinds = spec.get("type"), old.get("type")
    if kinds == ("LoadBalancer", "LoadBalancer") and spec.get("loadBalancerClass") != old.get("loadBalancerClass"):
        display = rendering.wire(spec.get("loadBalancerClass"))
        yield fielderror.invalid(SPEC.child("loadBalancerClass"), display, "may not change once set")
    both_check = needs_health_check(spec) and needs_health_check(old)
    if both_check and spec.get("healthCheckNodePort") != old.get("healthCheckNodePort"):
        yield fielderror.forbidden(SPEC.child("healthCheckNodePort"), typerules.IMMUTABLE)


def warnings(spec: Document, annotations: Mapping[str, str]) -> Iterator[str]:
    """Yield warnings about a new service that is valid and probably wrong."""
    if _HINTS in annotations:
        yield f"annotation {_HINTS} is deprecated, please use {_MODE} instead"
    kind, external = spec.get("type"), spec.get("externalIPs")
    is_headless = kind == "ClusterIP" and spec.get("clusterIP") == serviceaddresses.HEADLESS
    if is_headless and spec.get("loadBalancerIP"):
        yield "spec.loadBalancerIP is ignored for headless services"
    if is_headless and external:
        yield "spec.externalIPs is ignored for headless services"
    if is_headless and spec.get("sessionAffinity") != "None":
        yield "spec.SessionAffinity is ignored for headless services"
    if external and not is_headless and kind != "ExternalName":
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    if external and kind == "ExternalName":
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if spec.get("externalName") and kind != "ExternalName":
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
    if spec.get("trafficDistribution") == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


# Rules between fields


def _check_topology_annotations(spec: Document, at: Path, facts: Facts) -> Errors:
    hints, mode = facts.annotations.get(_HINTS), facts.annotations.get(_MODE)
    if hints is not None and mode is not None and hints != mode:
        detail = f"must match annotations[{_HINTS}] when both are specified"
        yield fielderror.invalid(METADATA.child("annotations").key(_MODE), mode, detail)


def _check_has_address(spec: Document, at: Path) -> Errors:
    kind = spec.get("type", "")
    if kind in ("LoadBalancer", "NodePort") and serviceaddresses.is_headless(spec):
        detail = f"may not be set to 'None' for {kind} services"
        yield fielderror.invalid(at.child("clusterIPs").item(0), serviceaddresses.HEADLESS, detail)


def _external_name(name: str, at: Path) -> Found:
    domain = name.removesuffix(".")
    return constraints.dns_subdomain(domain, at) if domain else [fielderror.required(at)]


def _check_ports(spec: Document, at: Path) -> Errors:
    ports = spec.get("ports") or ()
    for place, port, name, is_repeated in collection.walk_items(ports, at.child("ports")):
        if name:
            yield from constraints.dns_label(name, place.child("name"))
            if is_repeated:
                yield fielderror.duplicate(place.child("name"), name)
        elif len(ports) > 1:
            yield fielderror.required(place.child("name"))
        yield from _TYPES["ServicePort"](port, place)


def _check_addresses(spec: Document, at: Path, facts: Facts) -> Errors:
    return serviceaddresses.check(spec, facts.old)


def _external_addresses(addresses: Sequence[str], at: Path, facts: Facts) -> Errors:
    old = facts.old.get("externalIPs") or ()
    for position, address in enumerate(addresses):
        place = at.item(position)
        problems = () if address in old else constraints.address(address, place)
        yield from problems or endpoints.reachable_address(address, place)


def _check_node_ports(spec: Document, at: Path) -> Errors:
    previous: set[tuple[str, int]] = set()
    ports = [(at.child("ports").item(position), port) for position, port in enumerate(spec.get("ports") or ())]
    for place, port in ports:
        if spec.get("type") == "ClusterIP" and port.get("nodePort"):
            yield fielderror.forbidden(place.child("nodePort"), "may not be used when `type` is 'ClusterIP'")
    for place, port in ports:
        key = port.get("protocol", ""), port.get("nodePort", 0)
        if key[1] and key in previous:
            yield fielderror.duplicate(place.child("nodePort"), key[1])
        previous.add(key)


def _check_port_numbers(spec: Document, at: Path) -> Errors:
    previous: set[tuple[str, int]] = set()
    for position, port in enumerate(spec.get("ports") or ()):
        protocol, number = key = port.get("protocol", ""), port.get("port", 0)
        if key in previous:
            # Upstream shows a port with these two fields only, in the form of its internal type.
            parts = (
                f'{{"Name":"","Protocol":"{protocol}","AppProtocol":null,"Port":{number},"TargetPort":0,"NodePort":0}}'
            )
            yield fielderror.duplicate(at.child("ports").item(position), rendering.Rendered(parts))
        previous.add(key)


def _check_source_ranges(spec: Document, at: Path, facts: Facts) -> Errors:
    ranges, is_balancer = spec.get("loadBalancerSourceRanges") or (), spec.get("type") == "LoadBalancer"
    annotation = facts.annotations.get(_RANGES)
    if ranges:
        place = at.child("LoadBalancerSourceRanges")
        if not is_balancer:
            yield fielderror.forbidden(place, _ONLY_BALANCERS)
        old = [each.strip() for each in facts.old.get("loadBalancerSourceRanges") or ()]
        for position, each in enumerate(ranges):
            if each.strip() not in old:
                yield from _network(each.strip(), place.item(position))
    elif annotation is not None:
        place = METADATA.child("annotations").key(_RANGES)
        if not is_balancer:
            yield fielderror.forbidden(place, _ONLY_BALANCERS)
        if annotation.strip() and facts.old_annotations.get(_RANGES) != annotation:
            for each in annotation.strip().split(","):
                yield from _network(each.strip(), place)


def _network(text: str, at: Path) -> Errors:
    try:
        ipaddress.ip_network(text if "/" in text else "no network")
    except ValueError as error:
        detail = constraints.CIDR
        if "host bits" in str(error):
            network = ipaddress.ip_network(text, strict=False)
            detail = f'must not have bits set beyond the prefix length (e.g. "{network}")'
        yield fielderror.invalid(at, text, detail)


_TYPES: Final = rulenotation.load("service", globals())
