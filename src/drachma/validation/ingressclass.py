"""Rules for classes of ingresses."""

import re
from collections.abc import Mapping
from typing import Any, Final

from drachma.validation import fielderror, ingress, metadata, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, Path
from drachma.values import names

_LONGEST_CONTROLLER: Final = 250
_HTTP_PATH: Final = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_SCOPES: Final = ("Cluster", "Namespace")


def check(spec: Mapping[str, Any]) -> Errors:
    """The spec of a class."""
    controller, at = spec.get("controller", ""), SPEC.child("controller")
    if len(controller) > _LONGEST_CONTROLLER:
        yield fielderror.too_long(at, _LONGEST_CONTROLLER)
    yield from _domain_and_path(controller, at)
    if spec.get("parameters") is not None:
        yield from _parameters(spec["parameters"])


def check_update(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """Who sees to ingresses of a class is decided once."""
    if spec.get("controller", "") != old.get("controller", ""):
        yield fielderror.invalid(SPEC.child("controller"), spec.get("controller", ""), metadata.IMMUTABLE)


def _domain_and_path(text: str, at: Path) -> Errors:
    if not text:
        yield fielderror.required(at)
        return
    domain, _, path = text.partition("/")
    if not domain or not path:
        yield fielderror.invalid(at, text, 'must be a domain-prefixed path (such as "acme.io/foo")')
        return
    yield from fielderror.problems(at, domain, names.dns1123_subdomain(domain))
    if not _HTTP_PATH.fullmatch(path):
        detail = f"Invalid path (regex used for validation is '{_HTTP_PATH.pattern}')"
        yield fielderror.invalid(at, path, detail)


def _parameters(parameters: Mapping[str, Any]) -> Errors:
    at = SPEC.child("parameters")
    yield from ingress.check_reference(parameters, at)
    scope, namespace = parameters.get("scope", ""), parameters.get("namespace")
    if scope not in _SCOPES:
        yield fielderror.not_supported(at.child("scope"), rendering.named(scope), _SCOPES)
    elif scope == "Namespace":
        if namespace is None:
            yield fielderror.required(at.child("namespace"), "`parameters.scope` is set to 'Namespace'")
        else:
            yield from fielderror.problems(at.child("namespace"), namespace, names.dns1123_label(namespace))
    elif namespace is not None:
        yield fielderror.forbidden(at.child("namespace"), "`parameters.scope` is set to 'Cluster'")
