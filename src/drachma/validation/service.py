"""Rules for services."""

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.validation import fielderror, metadata, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, Path
from drachma.validation.podspec import choices
from drachma.values import names

_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_AFFINITIES: Final = ("ClientIP", "None")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_POLICIES: Final = ("Cluster", "Local")
_FAMILIES: Final = ("IPv4", "IPv6")
_FAMILY_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
_HEADLESS: Final = "None"


def name_problems(name: str, *, is_prefix: bool) -> Sequence[str]:
    """The name of a service is a part of a domain name that does not begin with a digit."""
    return names.dns1035_label(names.mask_trailing_dash(name) if is_prefix else name)


def check(spec: Mapping[str, Any]) -> Errors:
    """The spec of a service."""
    kind = spec.get("type", "")
    ports, is_headless = spec.get("ports") or (), spec.get("clusterIP") == _HEADLESS
    if not ports and not is_headless and kind != "ExternalName":
        yield fielderror.required(SPEC.child("ports"))
    if kind == "LoadBalancer" and is_headless:
        detail = "may not be set to 'None' for LoadBalancer services"
        yield fielderror.invalid(SPEC.child("clusterIPs").item(0), _HEADLESS, detail)
    if kind == "NodePort" and is_headless:
        detail = "may not be set to 'None' for NodePort services"
        yield fielderror.invalid(SPEC.child("clusterIPs").item(0), _HEADLESS, detail)
    if kind == "ExternalName":
        yield from _external_name(spec)
    yield from _ports(ports)
    if spec.get("selector"):
        yield from metadata.labels(spec["selector"], SPEC.child("selector"))
    affinity = spec.get("sessionAffinity", "")
    if not affinity:
        yield fielderror.required(SPEC.child("sessionAffinity"))
    elif affinity not in _AFFINITIES:
        yield fielderror.not_supported(SPEC.child("sessionAffinity"), rendering.named(affinity), _AFFINITIES)
    if not kind:
        yield fielderror.required(SPEC.child("type"))
    elif kind not in _TYPES:
        yield fielderror.not_supported(SPEC.child("type"), rendering.named(kind), _TYPES)
    yield from _addresses(spec)
    yield from _traffic(spec)


def check_update(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """A service keeps its address, as long as it has one."""
    kinds = spec.get("type"), old.get("type")
    before = old.get("clusterIPs") or ()
    if "ExternalName" in kinds or not before:
        return
    current = spec.get("clusterIPs") or ()
    if current and current[0] != before[0]:
        at = SPEC.child("clusterIPs").item(0)
        yield fielderror.invalid(at, rendering.wire(tuple(current)), "may not change once set")


def _external_name(spec: Mapping[str, Any]) -> Errors:
    for field in ("clusterIPs", "clusterIP"):
        if spec.get(field):
            detail = "may not be set when `type` is 'ExternalName'"
            yield fielderror.forbidden(SPEC.child(field), detail)
    name = spec.get("externalName", "").removesuffix(".")
    if not name:
        yield fielderror.required(SPEC.child("externalName"))
    else:
        yield from fielderror.problems(SPEC.child("externalName"), name, names.dns1123_subdomain(name))


def _ports(ports: Sequence[Mapping[str, Any]]) -> Errors:
    seen: set[str] = set()
    pairs: set[tuple[str, int]] = set()
    for position, port in enumerate(ports):
        at = SPEC.child("ports").item(position)
        yield from _port(port, at, is_named=len(ports) > 1, seen=seen)
        pair = port.get("protocol", ""), port.get("port", 0)
        if pair in pairs:
            shown = rendering.Rendered(f'{{"Name":"","Protocol":"{pair[0]}","AppProtocol":null,"Port":{pair[1]}}}')
            yield fielderror.duplicate(at, shown)
        pairs.add(pair)


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


def _addresses(spec: Mapping[str, Any]) -> Errors:
    first, every = spec.get("clusterIP", ""), spec.get("clusterIPs") or ()
    if first and every and first != every[0]:
        detail = "first value must match `clusterIP`"
        yield fielderror.invalid(SPEC.child("clusterIPs"), rendering.wire(tuple(every)), detail)
    for position, address in enumerate(every):
        if address == _HEADLESS and position == 0:
            continue
        if not _is_address(address):
            at = SPEC.child("clusterIPs").item(position)
            yield fielderror.invalid(at, address, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
    for position, family in enumerate(spec.get("ipFamilies") or ()):
        if family not in _FAMILIES:
            at = SPEC.child("ipFamilies").item(position)
            yield fielderror.not_supported(at, rendering.named(family), _FAMILIES)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _FAMILY_POLICIES:
        supported = ("SingleStack", "PreferDualStack", "RequireDualStack")
        yield fielderror.not_supported(SPEC.child("ipFamilyPolicy"), rendering.named(policy), supported)


def _traffic(spec: Mapping[str, Any]) -> Errors:
    for field in ("externalTrafficPolicy", "internalTrafficPolicy"):
        policy = spec.get(field)
        if policy and policy not in _POLICIES:
            yield fielderror.not_supported(SPEC.child(field), rendering.named(policy), _POLICIES)
    if spec.get("externalTrafficPolicy") and spec.get("type") not in ("LoadBalancer", "NodePort"):
        detail = "may only be set for externally-accessible services"
        at, shown = SPEC.child("externalTrafficPolicy"), rendering.named(spec["externalTrafficPolicy"])
        yield fielderror.invalid(at, shown, detail)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
