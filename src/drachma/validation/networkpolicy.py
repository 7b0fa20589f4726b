"""Rules for network policies."""

import ipaddress
from collections.abc import Mapping
from typing import Any, Final

from drachma.validation import fielderror, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, Path
from drachma.validation.podspec import choices, selectors

_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_TYPES: Final = ("Ingress", "Egress")
_NO_PEER: Final = "must specify a peer"
_TWO_PEERS: Final = "may not specify both ipBlock and another peer"


def check(spec: Mapping[str, Any]) -> Errors:
    """The spec of a policy."""
    yield from selectors.check(spec.get("podSelector"), SPEC.child("podSelector"))
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for position, rule in enumerate(spec.get(direction) or ()):
            at = SPEC.child(direction).item(position)
            for index, port in enumerate(rule.get("ports") or ()):
                yield from _port(port, at.child("ports").item(index))
            for index, peer in enumerate(rule.get(peers) or ()):
                yield from _peer(peer, at.child(peers).item(index))
    kinds = spec.get("policyTypes") or ()
    if len(kinds) > len(_TYPES):
        at = SPEC.child("policyTypes")
        yield fielderror.invalid(at, rendering.wire(tuple(kinds)), "may not specify more than two policyTypes")
        return
    for position, kind in enumerate(kinds):
        if kind not in _TYPES:
            at = SPEC.child("policyTypes").item(position)
            yield fielderror.not_supported(at, rendering.named(kind), _TYPES)


def _port(port: Mapping[str, Any], at: Path) -> Errors:
    protocol = port.get("protocol")
    if protocol is not None and protocol not in _PROTOCOLS:
        yield fielderror.not_supported(at.child("protocol"), rendering.named(protocol), _PROTOCOLS)
    number, end = port.get("port"), port.get("endPort")
    if number is not None:
        yield from choices.port_or_name(number, at.child("port"))
        if end is not None and isinstance(number, int):
            if end < number:
                detail = "must be greater than or equal to `port`"
                yield fielderror.invalid(at.child("endPort"), end, detail)
            yield from choices.port(end, at.child("endPort"))
        elif end is not None:
            detail = "may not be specified when `port` is non-numeric"
            yield fielderror.invalid(at.child("endPort"), end, detail)
    elif end is not None:
        yield fielderror.invalid(at.child("endPort"), end, "may not be specified when `port` is not specified")


def _peer(peer: Mapping[str, Any], at: Path) -> Errors:
    chosen = [name for name in ("podSelector", "namespaceSelector") if peer.get(name) is not None]
    for name in chosen:
        yield from selectors.check(peer[name], at.child(name))
    block = peer.get("ipBlock")
    if block is not None:
        yield from _block(block, at.child("ipBlock"))
    if not chosen and block is None:
        yield fielderror.required(at, _NO_PEER)
    elif chosen and block is not None:
        yield fielderror.forbidden(at, _TWO_PEERS)


def _block(block: Mapping[str, Any], at: Path) -> Errors:
    text = block.get("cidr", "")
    if not text:
        yield fielderror.required(at.child("cidr"))
        return
    network = _network(text)
    if network is None:
        detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
        yield fielderror.invalid(at.child("cidr"), text, detail)
        return
    for position, each in enumerate(block.get("except") or ()):
        inner, place = _network(each), at.child("except").item(position)
        if inner is None:
            detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            yield fielderror.invalid(place, each, detail)
        elif inner.version != network.version or not inner.subnet_of(network) or inner == network:  # type: ignore[arg-type]
            yield fielderror.invalid(place, each, "must be a strict subset of `cidr`")


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False) if "/" in text else None
    except ValueError:
        return None
