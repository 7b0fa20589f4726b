"""Rules for the kinds of networking.k8s.io: Ingress, IngressClass, IPAddress and NetworkPolicy."""

import ipaddress
import re
from collections.abc import Sequence
from typing import Final

from drachma.validation import constraints, fielderror, formats, kindrules, rulenotation, typerules
from drachma.validation.fielderror import Errors, FieldError, Found
from drachma.validation.path import Document, Path
from drachma.values import names

CLASS_ANNOTATION: Final = "kubernetes.io/ingress.class"

_SEQUENCES: Final = ("//", "/./", "/../", "%2f", "%2F")
_SUFFIXES: Final = ("/..", "/.")
_HTTP_PATH: Final = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")


# Ingress. The facts of its types are the old spec or status, which is empty for a new object.


def _check_paths(rule: Document, at: Path, old: Document) -> list[FieldError]:
    """Check the paths of a rule, unless it is for a wildcard and the old spec has bad paths for wildcards."""
    is_wildcard = "*" in rule.get("host", "")
    if is_wildcard and any("*" in each.get("host", "") and _paths(each, at) for each in old.get("rules") or ()):
        return []
    return _paths(rule, at)


def _paths(rule: Document, at: Path) -> list[FieldError]:
    http = rule.get("http")
    return [] if http is None else _TYPES["HTTPIngressRuleValue"](http, at.child("http"))


def _no_special_segments(path: str, at: Path) -> Errors:
    for sequence in _SEQUENCES:
        if sequence in path:
            yield fielderror.invalid(at, path, f"must not contain '{sequence}'")
    for suffix in _SUFFIXES:
        if path.endswith(suffix):
            yield fielderror.invalid(at, path, f"cannot end with '{suffix}'")


def _not_an_address(host: str, at: Path) -> Errors:
    if formats.lenient_address(host) is not None:
        yield fielderror.invalid(at, host, "must be a DNS name, not an IP address")


def _host_name(host: str, at: Path) -> Found:
    problems = names.wildcard_subdomain if "*" in host else names.dns1123_subdomain
    return fielderror.problems(at, host, problems(host))


def _secret_name(name: str, at: Path, old: Document) -> Found:
    """Check the name of a secret, unless the old spec has a bad one."""
    before = [each.get("secretName") for each in old.get("tls") or ()]
    if any(each and names.dns1123_subdomain(each) for each in before):
        return ()
    return constraints.dns_subdomain(name, at)


def _check_points(status: Document, at: Path, old: Document) -> list[FieldError]:
    """Check the addresses of an ingress; those that the old status has may stay."""
    points, old_points = ((each.get("loadBalancer") or {}).get("ingress") or () for each in (status, old))
    stored_addresses = frozenset(each.get("ip") for each in old_points)
    return _POINTS(points, at.child("loadBalancer", "ingress"), stored_addresses)


def _new_address(address: str, at: Path, stored_addresses: frozenset[str]) -> Found:
    return () if address in stored_addresses else constraints.address(address, at)


def _check_class(ingress: Document, at: Path, metadata: Document) -> Errors:
    """Check that the annotation and the field of a new ingress name the same class."""
    name = (ingress.get("spec") or {}).get("ingressClassName")
    annotation = (metadata.get("annotations") or {}).get(CLASS_ANNOTATION)
    if name is not None and annotation is not None and name != annotation:
        detail = "must match `ingressClassName` when both are specified"
        yield fielderror.invalid(Path("annotations").child(CLASS_ANNOTATION), annotation, detail)


# IngressClass


def _controller_name(text: str, at: Path) -> Errors:
    domain, _, path = text.partition("/")
    yield from constraints.domain_prefixed_path(text, at)
    if domain and path and not _HTTP_PATH.fullmatch(path):
        yield fielderror.invalid(at, path, f"Invalid path (regex used for validation is '{_HTTP_PATH.pattern}')")


# IPAddress


def address_name_problems(name: str, *, is_prefix: bool) -> Sequence[str]:
    """Return what keeps a name from being that of an IPAddress: the address itself in canonical form."""
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    return [] if str(address) == name else [f'must be in canonical form ("{address}")']


# NetworkPolicy


def _has_port_name(port: Document) -> bool:
    return not isinstance(port.get("port"), int)


def _check_networks(block: Document, at: Path) -> Errors:
    text = block.get("cidr", "")
    network = formats.network(text)
    if not text:
        return
    if network is None:
        yield fielderror.invalid(at.child("cidr"), text, constraints.CIDR)
        return
    for position, each in enumerate(block.get("except") or ()):
        inner, place = formats.network(each), at.child("except").item(position)
        if inner is None:
            yield fielderror.invalid(place, each, constraints.CIDR)
        elif inner.version != network.version or not inner.subnet_of(network) or inner == network:  # type: ignore[arg-type]
            yield fielderror.invalid(place, each, "must be a strict subset of `cidr`")


_TYPES: Final = rulenotation.load("networking", globals())
_POINTS: Final = typerules.Each(_TYPES["IngressLoadBalancerIngress"])
KINDS: Final = kindrules.read(_TYPES)
