"""Rules for what kubelet does to a running container: probes and the handlers of its lifecycle."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from drachma.validation import fielderror, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.validation.podspec import choices

_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_COUNTS: Final = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_HEADER: Final = re.compile(r"[-A-Za-z0-9]+")
_HEADER_RULE: Final = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for "
    "validation is '[-A-Za-z0-9]+')"
)


def check(container: Mapping[str, Any], at: Path, *, grace: int | None) -> Errors:
    """The lifecycle and the probes of a container."""
    lifecycle = container.get("lifecycle")
    if lifecycle is not None:
        for field in ("postStart", "preStop"):
            if lifecycle.get(field) is not None:
                yield from _handler(lifecycle[field], at.child("lifecycle", field), kinds=_HOOKS, grace=grace)
    for field in _PROBES:
        probe = container.get(field)
        if probe is not None:
            yield from _probe(probe, at.child(field), is_readiness=field == "readinessProbe", grace=grace)


def check_absent(container: Mapping[str, Any], at: Path) -> Errors:
    """Init containers that end before the pod runs have nothing to be probed."""
    for field in ("lifecycle", *_PROBES):
        if container.get(field) is not None:
            detail = "may not be set for init containers without restartPolicy=Always"
            yield fielderror.forbidden(at.child(field), detail)


def _probe(probe: Mapping[str, Any], at: Path, *, is_readiness: bool, grace: int | None) -> Errors:
    yield from _handler(probe, at, kinds=_CHECKS, grace=grace)
    for field in _COUNTS:
        yield from choices.not_negative(probe.get(field, 0), at.child(field))
    own_grace = probe.get("terminationGracePeriodSeconds")
    if own_grace is not None and own_grace <= 0:
        yield fielderror.invalid(at.child("terminationGracePeriodSeconds"), own_grace, "must be greater than 0")
    if is_readiness:
        if own_grace is not None:
            detail = "must not be set for readinessProbes"
            yield fielderror.invalid(at.child("terminationGracePeriodSeconds"), own_grace, detail)
    elif probe.get("successThreshold", 0) != 1:
        yield fielderror.invalid(at.child("successThreshold"), probe.get("successThreshold", 0), "must be 1")


Check = Callable[[Mapping[str, Any], Path, int | None], Errors]


def _handler(handler: Mapping[str, Any], at: Path, *, kinds: Mapping[str, Check], grace: int | None) -> Errors:
    given = [field for field in kinds if handler.get(field) is not None]
    if not given:
        yield fielderror.required(at, "must specify a handler type")
        return
    first, *others = given
    yield from kinds[first](handler[first], at.child(first), grace)
    for field in others:
        yield fielderror.forbidden(at.child(field), "may not specify more than 1 handler type")


def _exec(action: Mapping[str, Any], at: Path, grace: int | None) -> Errors:
    if not action.get("command"):
        yield fielderror.required(at.child("command"))


def _http(action: Mapping[str, Any], at: Path, grace: int | None) -> Errors:
    if not action.get("path"):
        yield fielderror.required(at.child("path"))
    yield from choices.port_or_name(action.get("port", 0), at.child("port"))
    scheme = action.get("scheme", "")
    if scheme not in ("HTTP", "HTTPS"):
        yield fielderror.not_supported(at.child("scheme"), rendering.named(scheme), ("HTTP", "HTTPS"))
    for header in action.get("httpHeaders") or ():
        if not _HEADER.fullmatch(header.get("name", "")):
            yield fielderror.invalid(at.child("httpHeaders"), header.get("name", ""), _HEADER_RULE)


def _tcp(action: Mapping[str, Any], at: Path, grace: int | None) -> Errors:
    yield from choices.port_or_name(action.get("port", 0), at.child("port"))


def _sleep(action: Mapping[str, Any], at: Path, grace: int | None) -> Errors:
    seconds = action.get("seconds", 0)
    if grace is not None and not 0 <= seconds <= grace:
        detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
        yield fielderror.invalid(at, seconds, detail)


_CHECKS: Final[Mapping[str, Check]] = {"exec": _exec, "httpGet": _http, "tcpSocket": _tcp, "grpc": _tcp}
_HOOKS: Final[Mapping[str, Check]] = {"exec": _exec, "httpGet": _http, "tcpSocket": _tcp, "sleep": _sleep}
