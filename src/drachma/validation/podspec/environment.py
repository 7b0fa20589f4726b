"""Rules for the environment of containers, and for the fields of a pod that variables and files can show."""

import re
from collections.abc import Sequence
from typing import Final

from drachma.validation import constraints, fielderror, rulenotation
from drachma.validation.fielderror import Errors, Found
from drachma.validation.path import Document, Path
from drachma.values import names, quotation

VOLUME_FIELDS: Final = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
"""Fields of a pod that files can show."""

_ENVIRONMENT_FIELDS: Final = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
_CONVERTIBLE: Final = frozenset({*VOLUME_FIELDS, *_ENVIRONMENT_FIELDS, "spec.restartPolicy", "status.phase"})
_RESOURCES: Final = (
    "limits.cpu", "limits.ephemeral-storage", "limits.memory",
    "requests.cpu", "requests.ephemeral-storage", "requests.memory",
)  # fmt: skip
_SUBSCRIPT: Final = re.compile(r"(?P<path>.*?)\['(?P<key>.*)'\]", re.DOTALL)
_PAGES: Final = ("limits.hugepages-", "requests.hugepages-")
_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_SIZES: Final = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei"
_DIVISORS: Final = {
    "cpu": ("1m and 1", "cpu", ("1m", "1")),
    "memory": (_SIZES, "memory", _SIZES.split(", ")),
    "ephemeral-storage": (_SIZES, "local ephemeral storage", _SIZES.split(", ")),
    "hugepages": (_SIZES, "hugepages", _SIZES.split(", ")),
}
"""Divisors of resources, as messages list them; the name of the resource in messages; the divisors themselves."""

_variable_name: Final = constraints.matches(
    re.compile(r"[ -<>-~]+"),
    "a valid environment variable name must consist only of printable ASCII characters other than '='",
)
_config_key: Final = constraints.text(constraints.config_key_problems)
_source_name: Final = constraints.text(lambda name: names.dns1123_subdomain(names.mask_trailing_dash(name)))


def _check_one_source(variable: Document, at: Path) -> Found:
    source = variable.get("valueFrom")
    if source is None:
        return ()
    detail = ""
    members = sum(source.get(field) is not None for field in _SOURCES)
    if not members:
        choice = ", ".join(f"`{field}`" for field in _SOURCES[:-1])
        detail = f"must specify one of: {choice} or `{_SOURCES[-1]}`"
    elif variable.get("value"):
        detail = "may not be specified when `value` is not empty"
    elif members > 1:
        detail = "may not have more than one field specified at a time"
    return [fielderror.invalid(at.child("valueFrom"), "", detail)] if detail else ()


def check_sources(sources: Sequence[Document], at: Path) -> Errors:
    """Yield the errors of config maps and secrets whose keys all become variables."""
    for position, source in enumerate(sources):
        yield from TYPES["EnvFromSource"](source, at.item(position))
        members = sum(source.get(field) is not None for field in ("configMapRef", "secretRef"))
        if not members:
            yield fielderror.invalid(at, "", "must specify one of: `configMapRef` or `secretRef`")
        elif members > 1:
            yield fielderror.invalid(at, "", "may not have more than one field specified at a time")


def _environment_field(reference: Document, at: Path) -> Errors:
    return check_field(reference, at, supported=_ENVIRONMENT_FIELDS)


def check_field(reference: Document, at: Path, *, supported: Sequence[str]) -> Errors:
    """Yield the errors of a reference to a field of the pod."""
    for field in ("apiVersion", "fieldPath"):
        if not reference.get(field):
            yield fielderror.required(at.child(field))
            return
    path, place = reference["fieldPath"], at.child("fieldPath")
    subscript = _SUBSCRIPT.fullmatch(path)
    base = subscript["path"] if subscript else path
    is_convertible = base in ("metadata.annotations", "metadata.labels") if subscript else path in _CONVERTIBLE
    problem = ""
    if reference["apiVersion"] != "v1":
        problem = f"unsupported pod version: {reference['apiVersion']}"
    elif not is_convertible and subscript:
        problem = f"field label does not support subscript: {quotation.quote(path)}"
    elif not is_convertible:
        problem = f"field label not supported: {path}"
    if problem:
        yield fielderror.invalid(place, path, f"error converting fieldPath: {problem}")
    elif subscript:
        key = subscript["key"].lower() if base == "metadata.annotations" else subscript["key"]
        yield from constraints.qualified_name(key, at)
    elif path not in supported:
        yield fielderror.not_supported(place, path, supported)


def _environment_resource(reference: Document, at: Path) -> Errors:
    return check_resource(reference, at, in_volume=False)


def check_resource(reference: Document, at: Path, *, in_volume: bool) -> Errors:
    """Yield the errors of a reference to a resource of a container."""
    resource = reference.get("resource", "")
    if in_volume and not reference.get("containerName"):
        yield fielderror.required(at.child("containerName"))
    elif not resource:
        yield fielderror.required(at.child("resource"))
    elif resource not in _RESOURCES and not resource.startswith(_PAGES):
        yield fielderror.not_supported(at.child("resource"), resource, _RESOURCES)
    yield from _divisor(resource, reference.get("divisor", "0"), at.child("divisor"))


def _divisor(resource: str, divisor: str, at: Path) -> Found:
    divisors = _DIVISORS.get("hugepages" if resource.startswith(_PAGES) else resource.partition(".")[2])
    if divisor == "0" or divisors is None or divisor in divisors[2]:
        return ()
    detail = f"only divisor's values {divisors[0]} are supported with the {divisors[1]} resource"
    return [fielderror.invalid(at, resource, detail)]


TYPES: Final = rulenotation.load("podspec/environment", globals())
