"""Rules for services. Their addresses have a module of their own, :mod:`drachma.validation.serviceaddresses`."""

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from drachma.validation import endpoints, fielderror, metadata, rendering, serviceaddresses
from drachma.validation.fielderror import Errors
from drachma.validation.path import METADATA, SPEC, Path
from drachma.validation.podspec import choices
from drachma.values import names

_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_AFFINITIES: Final = ("ClientIP", "None")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_POLICIES: Final = ("Cluster", "Local")
_DISTRIBUTIONS: Final = ("PreferClose", "PreferSameZone", "PreferSameNode")
_LONGEST_AFFINITY: Final = 86400
_ONLY_BALANCERS: Final = "may only be used when `type` is 'LoadBalancer'"
_RANGES: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"
_HINTS: Final = "service.kubernetes.io/topology-aware-hints"
_MODE: Final = "service.kubernetes.io/topology-mode"


def name_problems(name: str, *, is_prefix: bool) -> Sequence[str]:
    """The name of a service is a part of a domain name."""
    return names.dns1123_label(names.mask_trailing_dash(name) if is_prefix else name)


def is_open(spec: Mapping[str, Any]) -> bool:
    """Whether a service is reached from outside of the cluster."""
    kind = spec.get("type")
    return kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def needs_health_check(spec: Mapping[str, Any]) -> bool:
    """Whether balancers have to find out which nodes have pods."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def check(
    spec: Mapping[str, Any], annotations: Mapping[str, str], old: Mapping[str, Any], *, notes: Mapping[str, str]
) -> Errors:
    """A service; addresses that an ``old`` one has, and what its annotations (``notes``) say, may stay as they are."""
    hints, mode = annotations.get(_HINTS), annotations.get(_MODE)
    if hints is not None and mode is not None and hints != mode:
        detail = f"must match annotations[{_HINTS}] when both are specified"
        yield fielderror.invalid(METADATA.child("annotations").key(_MODE), mode, detail)
    kind, ports, is_headless = spec.get("type", ""), spec.get("ports") or (), serviceaddresses.is_headless(spec)
    if not ports and not is_headless and kind != "ExternalName":
        yield fielderror.required(SPEC.child("ports"))
    if kind in ("LoadBalancer", "NodePort") and is_headless:
        detail = f"may not be set to 'None' for {kind} services"
        yield fielderror.invalid(SPEC.child("clusterIPs").item(0), serviceaddresses.HEADLESS, detail)
    if kind == "ExternalName":
        yield from _external_name(spec)
    seen: set[str] = set()
    for position, port in enumerate(ports):
        yield from _port(port, SPEC.child("ports").item(position), is_named=len(ports) > 1, seen=seen)
    if spec.get("selector"):
        yield from metadata.labels(spec["selector"], SPEC.child("selector"))
    yield from _affinity(spec)
    yield from serviceaddresses.check(spec, old)
    for position, address in enumerate(spec.get("externalIPs") or ()):
        at = SPEC.child("externalIPs").item(position)
        problems = () if address in (old.get("externalIPs") or ()) else choices.address(address, at)
        yield from problems or endpoints.check_reachable(address, at)
    if not kind:
        yield fielderror.required(SPEC.child("type"))
    elif kind not in _TYPES:
        yield fielderror.not_supported(SPEC.child("type"), rendering.named(kind), _TYPES)
    yield from _port_numbers(ports, kind)
    yield from _source_ranges(spec, annotations, old, notes=notes)
    yield from _balancer(spec)
    yield from _traffic(spec)


def check_update(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """A service keeps its addresses, as long as it has some, and what its balancer relies on."""
    yield from serviceaddresses.check_update(spec, old)
    kinds = spec.get("type"), old.get("type")
    if kinds == ("LoadBalancer", "LoadBalancer") and spec.get("loadBalancerClass") != old.get("loadBalancerClass"):
        shown = rendering.wire(spec.get("loadBalancerClass"))
        yield fielderror.invalid(SPEC.child("loadBalancerClass"), shown, "may not change once set")
    both_check = needs_health_check(spec) and needs_health_check(old)
    if both_check and spec.get("healthCheckNodePort") != old.get("healthCheckNodePort"):
        yield fielderror.forbidden(SPEC.child("healthCheckNodePort"), metadata.IMMUTABLE)


def warnings(spec: Mapping[str, Any], annotations: Mapping[str, str]) -> Iterator[str]:
    """What is odd about a new service."""
    if _HINTS in annotations:
        yield f"annotation {_HINTS} is deprecated, please use {_MODE} instead"
    kind, outside = spec.get("type"), spec.get("externalIPs")
    is_headless = kind == "ClusterIP" and spec.get("clusterIP") == serviceaddresses.HEADLESS
    if is_headless and spec.get("loadBalancerIP"):
        yield "spec.loadBalancerIP is ignored for headless services"
    if is_headless and outside:
        yield "spec.externalIPs is ignored for headless services"
    if is_headless and spec.get("sessionAffinity") != "None":
        yield "spec.SessionAffinity is ignored for headless services"
    if outside and not is_headless and kind != "ExternalName":
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    if outside and kind == "ExternalName":
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if spec.get("externalName") and kind != "ExternalName":
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
    if spec.get("trafficDistribution") == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


def _external_name(spec: Mapping[str, Any]) -> Errors:
    for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(field):
            yield fielderror.forbidden(SPEC.child(field), "may not be set for ExternalName services")
    name = spec.get("externalName", "").removesuffix(".")
    if not name:
        yield fielderror.required(SPEC.child("externalName"))
    else:
        yield from fielderror.problems(SPEC.child("externalName"), name, names.dns1123_subdomain(name))


def _port(port: Mapping[str, Any], at: Path, *, is_named: bool, seen: set[str]) -> Errors:
    name = port.get("name", "")
    if is_named and not name:
        yield fielderror.required(at.child("name"))
    elif name:
        yield from fielderror.problems(at.child("name"), name, names.dns1123_label(name))
        if name in seen:
            yield fielderror.duplicate(at.child("name"), name)
        seen.add(name)
    yield from choices.port(port.get("port", 0), at.child("port"))
    protocol = port.get("protocol", "")
    if not protocol:
        yield fielderror.required(at.child("protocol"))
    elif protocol not in _PROTOCOLS:
        yield fielderror.not_supported(at.child("protocol"), rendering.named(protocol), _PROTOCOLS)
    yield from choices.port_or_name(port.get("targetPort", 0), at.child("targetPort"))
    if port.get("appProtocol") is not None:
        yield from choices.qualified_name(port["appProtocol"], at.child("appProtocol"))


def _port_numbers(ports: Sequence[Mapping[str, Any]], kind: str) -> Errors:
    """Each port once, and none on nodes where the service is not reached there."""
    places = [SPEC.child("ports").item(position) for position in range(len(ports))]
    for at, port in zip(places, ports, strict=True):
        if kind == "ClusterIP" and port.get("nodePort"):
            yield fielderror.forbidden(at.child("nodePort"), "may not be used when `type` is 'ClusterIP'")
    for field in ("nodePort", "port"):
        seen: set[tuple[str, int]] = set()
        for at, port in zip(places, ports, strict=True):
            pair = port.get("protocol", ""), port.get(field, 0)
            if field == "nodePort" and not pair[1]:
                continue
            if pair in seen:
                yield (
                    fielderror.duplicate(at, _shown(pair))
                    if field == "port"
                    else fielderror.duplicate(at.child(field), pair[1])
                )
            seen.add(pair)


def _shown(pair: tuple[str, int]) -> rendering.Rendered:
    """A port in the form of upstream's internal type, of which only this much counts."""
    return rendering.Rendered(
        f'{{"Name":"","Protocol":"{pair[0]}","AppProtocol":null,"Port":{pair[1]},"TargetPort":0,"NodePort":0}}'
    )


def _affinity(spec: Mapping[str, Any]) -> Errors:
    affinity, settings, at = spec.get("sessionAffinity", ""), spec.get("sessionAffinityConfig"), SPEC
    if not affinity:
        yield fielderror.required(at.child("sessionAffinity"))
    elif affinity not in _AFFINITIES:
        yield fielderror.not_supported(at.child("sessionAffinity"), rendering.named(affinity), _AFFINITIES)
    place = at.child("sessionAffinityConfig")
    if affinity == "None" and settings is not None:
        yield fielderror.forbidden(place, "must not be set when session affinity is None")
    if affinity != "ClientIP":
        return
    if settings is None:
        yield fielderror.required(place, "when session affinity type is ClientIP")
        return
    seconds = (settings.get("clientIP") or {}).get("timeoutSeconds")
    if settings.get("clientIP") is None:
        yield fielderror.required(place.child("clientIP"), "when session affinity type is ClientIP")
    elif seconds is None:
        detail = "when session affinity type is ClientIP"
        yield fielderror.required(place.child("clientIP", "timeoutSeconds"), detail)
    elif not 0 < seconds <= _LONGEST_AFFINITY:
        detail = f"must be greater than 0 and less than {_LONGEST_AFFINITY}"
        yield fielderror.invalid(place.child("clientIP", "timeoutSeconds"), seconds, detail)


def _source_ranges(
    spec: Mapping[str, Any], annotations: Mapping[str, str], old: Mapping[str, Any], *, notes: Mapping[str, str]
) -> Errors:
    ranges, is_balancer = spec.get("loadBalancerSourceRanges") or (), spec.get("type") == "LoadBalancer"
    if ranges:
        at = SPEC.child("LoadBalancerSourceRanges")
        if not is_balancer:
            yield fielderror.forbidden(at, _ONLY_BALANCERS)
        before = [each.strip() for each in old.get("loadBalancerSourceRanges") or ()]
        for position, each in enumerate(ranges):
            if each.strip() not in before:
                yield from _network(each.strip(), at.item(position))
    elif _RANGES in annotations:
        at = METADATA.child("annotations").key(_RANGES)
        if not is_balancer:
            yield fielderror.forbidden(at, _ONLY_BALANCERS)
        text = annotations[_RANGES].strip()
        if text and notes.get(_RANGES) != annotations[_RANGES]:
            for each in text.split(","):
                yield from _network(each.strip(), at)


def _network(text: str, at: Path) -> Errors:
    try:
        ipaddress.ip_network(text if "/" in text else "no network")
    except ValueError as error:
        if "host bits" in str(error):
            shown = ipaddress.ip_network(text, strict=False)
            detail = f'must not have bits set beyond the prefix length (e.g. "{shown}")'
            yield fielderror.invalid(at, text, detail)
        else:
            yield fielderror.invalid(at, text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")


def _balancer(spec: Mapping[str, Any]) -> Errors:
    is_balancer, named = spec.get("type") == "LoadBalancer", spec.get("loadBalancerClass")
    if spec.get("allocateLoadBalancerNodePorts") is not None and not is_balancer:
        yield fielderror.forbidden(SPEC.child("allocateLoadBalancerNodePorts"), _ONLY_BALANCERS)
    if named is not None and is_balancer:
        yield from choices.qualified_name(named, SPEC.child("loadBalancerClass"))
    elif named is not None:
        yield fielderror.forbidden(SPEC.child("loadBalancerClass"), _ONLY_BALANCERS)


def _traffic(spec: Mapping[str, Any]) -> Errors:
    outside, at = spec.get("externalTrafficPolicy", ""), SPEC.child("externalTrafficPolicy")
    if not is_open(spec):
        if outside:
            detail = "may only be set for externally-accessible services"
            yield fielderror.invalid(at, rendering.named(outside), detail)
    elif not outside:
        yield fielderror.required(at)
    elif outside not in _POLICIES:
        yield fielderror.not_supported(at, rendering.named(outside), _POLICIES)
    port, place = spec.get("healthCheckNodePort", 0), SPEC.child("healthCheckNodePort")
    if needs_health_check(spec):
        yield from choices.port(port, place) if port else [fielderror.required(place)]
    elif port:
        detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield fielderror.invalid(place, port, detail)
    inside = spec.get("internalTrafficPolicy")
    if inside is None and spec.get("type") in ("ClusterIP", "LoadBalancer", "NodePort"):
        yield fielderror.required(SPEC.child("internalTrafficPolicy"))
    elif inside is not None and inside not in _POLICIES:
        yield fielderror.not_supported(SPEC.child("internalTrafficPolicy"), rendering.named(inside), _POLICIES)
    distribution = spec.get("trafficDistribution")
    if distribution is not None and distribution not in _DISTRIBUTIONS:
        yield fielderror.not_supported(SPEC.child("trafficDistribution"), distribution, _DISTRIBUTIONS)
