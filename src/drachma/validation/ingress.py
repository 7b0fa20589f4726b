"""Rules for ingresses: which requests go where."""

from collections.abc import Mapping
from typing import Any, Final

from drachma.validation import fielderror, formats, rendering
from drachma.validation.fielderror import Errors, Found
from drachma.validation.path import SPEC, STATUS, Path
from drachma.validation.podspec import choices
from drachma.values import names

CLASS_ANNOTATION: Final = "kubernetes.io/ingress.class"

_PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")
_SEQUENCES: Final = ("//", "/./", "/../", "%2f", "%2F")
_SUFFIXES: Final = ("/..", "/.")
_NOT_AN_ADDRESS: Final = "must be a DNS name, not an IP address"


def check(spec: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> Errors:
    """The spec of an ingress; what an ``old`` one had that is not allowed any more may stay."""
    before = old or {}
    rules, backend = spec.get("rules") or (), spec.get("defaultBackend")
    if not rules and backend is None:
        yield fielderror.invalid(SPEC, rendering.NULL, "either `defaultBackend` or `rules` must be specified")
    if backend is not None:
        yield from _backend(backend, SPEC.child("defaultBackend"))
    bears_wildcards = any(
        "*" in rule.get("host", "") and list(_rule_paths(rule, SPEC)) for rule in before.get("rules") or ()
    )
    for position, rule in enumerate(rules):
        at = SPEC.child("rules").item(position)
        host = rule.get("host", "")
        if host:
            yield from _host(host, at.child("host"))
        if "*" not in host or not bears_wildcards:
            yield from _rule_paths(rule, at)
    bears_names = any(_secret_problems(each.get("secretName", "")) for each in before.get("tls") or ())
    for position, each in enumerate(spec.get("tls") or ()):
        yield from _tls(each, SPEC.child("tls").item(position), bears_names=bears_names)
    name = spec.get("ingressClassName")
    if name is not None:
        yield from fielderror.problems(SPEC.child("ingressClassName"), name, names.dns1123_subdomain(name))


def check_class(spec: Mapping[str, Any], annotations: Mapping[str, str]) -> Errors:
    """Whom a new ingress names in two places must be one."""
    name, noted = spec.get("ingressClassName"), annotations.get(CLASS_ANNOTATION)
    if name is not None and noted is not None and name != noted:
        detail = "must match `ingressClassName` when both are specified"
        yield fielderror.invalid(Path("annotations").child(CLASS_ANNOTATION), noted, detail)


def check_status(status: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """Where an ingress is reached."""
    known = {each.get("ip") for each in (old.get("loadBalancer") or {}).get("ingress") or ()}
    for position, point in enumerate((status.get("loadBalancer") or {}).get("ingress") or ()):
        at = STATUS.child("loadBalancer", "ingress").item(position)
        if point.get("ip") and point["ip"] not in known:
            yield from choices.address(point["ip"], at.child("ip"))
        host = point.get("hostname", "")
        if host:
            yield from fielderror.problems(at.child("hostname"), host, names.dns1123_subdomain(host))
            if formats.lenient_address(host) is not None:
                yield fielderror.invalid(at.child("hostname"), host, _NOT_AN_ADDRESS)


def check_reference(reference: Mapping[str, Any], at: Path) -> Errors:
    """A reference to an object in the same namespace."""
    group = reference.get("apiGroup")
    if group is not None:
        yield from fielderror.problems(at.child("apiGroup"), group, names.dns1123_subdomain(group))
    for field in ("kind", "name"):
        text = reference.get(field, "")
        if not text:
            yield fielderror.required(at.child(field))
        else:
            yield from fielderror.problems(at.child(field), text, names.path_segment_name(text))


def _host(host: str, at: Path) -> Errors:
    if formats.lenient_address(host) is not None:
        yield fielderror.invalid(at, host, _NOT_AN_ADDRESS)
    yield from _dns_name(host, at)


def _dns_name(host: str, at: Path) -> Found:
    rule = names.wildcard_subdomain if "*" in host else names.dns1123_subdomain
    return fielderror.problems(at, host, rule(host))


def _rule_paths(rule: Mapping[str, Any], at: Path) -> Errors:
    http = rule.get("http")
    if http is None:
        return
    paths, place = http.get("paths") or (), at.child("http", "paths")
    if not paths:
        yield fielderror.required(place)
    for position, path in enumerate(paths):
        yield from _path(path, place.item(position))


def _path(path: Mapping[str, Any], at: Path) -> Errors:
    kind, text = path.get("pathType"), path.get("path", "")
    if kind is None:
        yield fielderror.required(at.child("pathType"), "pathType must be specified")
        return
    if kind not in _PATH_TYPES:
        yield fielderror.not_supported(at.child("pathType"), rendering.named(kind), _PATH_TYPES)
    elif kind == "ImplementationSpecific":
        if text and not text.startswith("/"):
            yield fielderror.invalid(at.child("path"), text, "must be an absolute path")
    else:
        if not text.startswith("/"):
            yield fielderror.invalid(at.child("path"), text, "must be an absolute path")
        for sequence in _SEQUENCES:
            if sequence in text:
                yield fielderror.invalid(at.child("path"), text, f"must not contain '{sequence}'")
        for suffix in _SUFFIXES:
            if text.endswith(suffix):
                yield fielderror.invalid(at.child("path"), text, f"cannot end with '{suffix}'")
    yield from _backend(path.get("backend") or {}, at.child("backend"))


def _backend(backend: Mapping[str, Any], at: Path) -> Errors:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        yield fielderror.invalid(at, "", "cannot set both resource and service backends")
    elif resource is not None:
        yield from check_reference(resource, at.child("resource"))
    elif service is not None:
        yield from _service(service, at)
    else:
        yield fielderror.invalid(at, "", "resource or service backend is required")


def _service(service: Mapping[str, Any], at: Path) -> Errors:
    name, port = service.get("name", ""), service.get("port") or {}
    if not name:
        yield fielderror.required(at.child("service", "name"))
    else:
        yield from fielderror.problems(at.child("service", "name"), name, names.dns1123_label(name))
    title, number, place = port.get("name", ""), port.get("number", 0), at.child("service", "port")
    if title and number:
        yield fielderror.invalid(at, "", "cannot set both port name & port number")
    elif title:
        yield from choices.port_or_name(title, place.child("name"))
    elif number:
        yield from choices.port(number, place.child("number"))
    else:
        yield fielderror.required(at, "port name or number is required")


def _tls(tls: Mapping[str, Any], at: Path, *, bears_names: bool) -> Errors:
    for position, host in enumerate(tls.get("hosts") or ()):
        yield from _dns_name(host, at.child("hosts").item(position))
    secret = tls.get("secretName", "")
    if not bears_names:
        yield from fielderror.problems(at.child("secretName"), secret, _secret_problems(secret))


def _secret_problems(name: str) -> names.Problems:
    return names.dns1123_subdomain(name) if name else ()
