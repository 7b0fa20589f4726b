"""Rules for the environment of containers, and for values that come from the pod itself (the downward API)."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.validation import fielderror
from drachma.validation.fielderror import Errors, Found
from drachma.validation.path import Path
from drachma.validation.podspec import choices
from drachma.values import names, quotation

VOLUME_FIELDS: Final = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
"""What files can show of a pod."""

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
_PRINTABLE: Final = re.compile(r"[ -<>-~]+")
_NAME_RULE: Final = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def check(variables: Sequence[Mapping[str, Any]], at: Path) -> Errors:
    """The variables that a container gets one by one."""
    for position, variable in enumerate(variables):
        path, name = at.item(position), variable.get("name", "")
        if not name:
            yield fielderror.required(path.child("name"))
        elif not _PRINTABLE.fullmatch(name):
            yield fielderror.invalid(path.child("name"), name, _NAME_RULE)
        if variable.get("valueFrom") is not None:
            yield from _value_from(variable, path.child("valueFrom"))


def check_all_of(sources: Sequence[Mapping[str, Any]], at: Path) -> Errors:
    """Config maps and secrets whose keys all become variables."""
    for position, source in enumerate(sources):
        path, prefix = at.item(position), source.get("prefix", "")
        if prefix and not _PRINTABLE.fullmatch(prefix):
            yield fielderror.invalid(path.child("prefix"), prefix, _NAME_RULE)
        given = [field for field in ("configMapRef", "secretRef") if source.get(field) is not None]
        for field in given:
            name = source[field].get("name", "")
            if not name:
                yield fielderror.required(path.child(field, "name"))
            else:
                problems = names.dns1123_subdomain(names.mask_trailing_dash(name))
                yield from fielderror.problems(path.child(field, "name"), name, problems)
        if not given:
            yield fielderror.invalid(at, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(given) > 1:
            yield fielderror.invalid(at, "", "may not have more than one field specified at a time")


def check_field(reference: Mapping[str, Any], at: Path, *, supported: Sequence[str]) -> Errors:
    """A field of the pod itself."""
    for field in ("apiVersion", "fieldPath"):
        if not reference.get(field):
            yield fielderror.required(at.child(field))
            return
    path = reference["fieldPath"]
    subscript = _SUBSCRIPT.fullmatch(path)
    base = subscript["path"] if subscript else path
    is_known = base in ("metadata.annotations", "metadata.labels") if subscript else path in _CONVERTIBLE
    if reference["apiVersion"] != "v1":
        detail = f"unsupported pod version: {reference['apiVersion']}"
        yield fielderror.invalid(at.child("fieldPath"), path, f"error converting fieldPath: {detail}")
    elif not is_known:
        detail = "does not support subscript" if subscript else "not supported"
        shown = quotation.quote(path) if subscript else path
        problem = f"field label {detail}: {shown}" if subscript else f"field label not supported: {shown}"
        yield fielderror.invalid(at.child("fieldPath"), path, f"error converting fieldPath: {problem}")
    elif subscript:
        key = subscript["key"].lower() if base == "metadata.annotations" else subscript["key"]
        yield from choices.qualified_name(key, at)
    elif path not in supported:
        yield fielderror.not_supported(at.child("fieldPath"), path, supported)


def check_resource(reference: Mapping[str, Any], at: Path, *, in_volume: bool) -> Errors:
    """An amount that a container asks for."""
    resource = reference.get("resource", "")
    if in_volume and not reference.get("containerName"):
        yield fielderror.required(at.child("containerName"))
    elif not resource:
        yield fielderror.required(at.child("resource"))
    elif resource not in _RESOURCES and not resource.startswith(_PAGES):
        yield fielderror.not_supported(at.child("resource"), resource, _RESOURCES)
    yield from _divisor(resource, reference.get("divisor", "0"), at.child("divisor"))


_SIZES: Final = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei"
_DIVIDED: Final = {
    "cpu": ("1m and 1", "cpu", ("1m", "1")),
    "memory": (_SIZES, "memory", _SIZES.split(", ")),
    "ephemeral-storage": (_SIZES, "local ephemeral storage", _SIZES.split(", ")),
    "hugepages": (_SIZES, "hugepages", _SIZES.split(", ")),
}


def _divisor(resource: str, divisor: str, at: Path) -> Found:
    known = _DIVIDED.get("hugepages" if resource.startswith(_PAGES) else resource.partition(".")[2])
    if divisor == "0" or known is None or divisor in known[2]:
        return ()
    detail = f"only divisor's values {known[0]} are supported with the {known[1]} resource"
    return [fielderror.invalid(at, resource, detail)]


def _value_from(variable: Mapping[str, Any], at: Path) -> Errors:
    source = variable["valueFrom"]
    given = [field for field in _SOURCES if source.get(field) is not None]
    for field in given:
        reference, path = source[field], at.child(field)
        match field:
            case "fieldRef":
                yield from check_field(reference, path, supported=_ENVIRONMENT_FIELDS)
            case "resourceFieldRef":
                yield from check_resource(reference, path, in_volume=False)
            case "fileKeyRef":
                yield from _file_key(reference, path)
            case _:
                yield from _key(reference, path)
    if not given:
        choice = ", ".join(f"`{field}`" for field in _SOURCES[:-1])
        yield fielderror.invalid(at, "", f"must specify one of: {choice} or `{_SOURCES[-1]}`")
    elif variable.get("value"):
        yield fielderror.invalid(at, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield fielderror.invalid(at, "", "may not have more than one field specified at a time")


def _key(reference: Mapping[str, Any], at: Path) -> Errors:
    name, key = reference.get("name", ""), reference.get("key", "")
    yield from fielderror.problems(at.child("name"), name, names.dns1123_subdomain(name))
    if not key:
        yield fielderror.required(at.child("key"))
    else:
        yield from fielderror.problems(at.child("key"), key, choices.config_key_problems(key))


def _file_key(reference: Mapping[str, Any], at: Path) -> Errors:
    key, path = reference.get("key", ""), reference.get("path", "")
    if not key:
        yield fielderror.required(at.child("key"))
    elif not _PRINTABLE.fullmatch(key):
        yield fielderror.invalid(at.child("key"), key, _NAME_RULE)
    yield from choices.label(reference.get("volumeName", ""), at.child("volumeName"))
    if not path:
        yield fielderror.required(at.child("path"))
    else:
        yield from choices.without_steps_back(path, at.child("path"))
