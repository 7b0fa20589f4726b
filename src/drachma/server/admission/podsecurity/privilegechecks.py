"""Checks of the privileges of containers: capabilities, privilege escalation, and the user they run as."""

from typing import Final

from drachma.server.admission.podsecurity.podviews import (
    Document,
    PodView,
    Violation,
    name_containers,
    name_setters,
    quote_all,
    security_of,
)

_DEFAULT_CAPABILITIES: Final = frozenset(
    {
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"),
        *("SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    }
)
"""Capabilities that container runtimes give to every container."""

_RESTRICTED_CAPABILITIES: Final = frozenset({"NET_BIND_SERVICE"})
_ALL: Final = "ALL"


def check_privileged(pod: PodView) -> Violation | None:
    """Refuse privileged containers."""
    names = pod.names_where(lambda container: bool(security_of(container).get("privileged")))
    if not names:
        return None
    return Violation("privileged", f"{name_containers(names)} must not set securityContext.privileged=true")


def check_added_capabilities(pod: PodView) -> Violation | None:
    """Refuse capabilities that container runtimes do not give by default."""
    detail = _forbid_capabilities(pod, _DEFAULT_CAPABILITIES)
    return Violation("non-default capabilities", detail) if detail else None


def require_dropped_capabilities(pod: PodView) -> Violation | None:
    """Refuse containers that keep capabilities, or add others than the one for low ports."""
    details = []
    names = pod.names_where(lambda container: _ALL not in _capabilities(container, "drop"))
    if names:
        details.append(f'{name_containers(names)} must set securityContext.capabilities.drop=["ALL"]')
    addition = _forbid_capabilities(pod, _RESTRICTED_CAPABILITIES)
    if addition:
        details.append(addition)
    return Violation("unrestricted capabilities", "; ".join(details)) if details else None


def forbid_escalation(pod: PodView) -> Violation | None:
    """Refuse containers that may gain more privileges than their parent process."""
    names = pod.names_where(lambda container: security_of(container).get("allowPrivilegeEscalation") is not False)
    if not names:
        return None
    return Violation(
        "allowPrivilegeEscalation != false",
        f"{name_containers(names)} must set securityContext.allowPrivilegeEscalation=false",
    )


def require_non_root(pod: PodView) -> Violation | None:
    """Refuse containers that may run as root."""
    reason, of_pod = "runAsNonRoot != true", pod.security.get("runAsNonRoot")
    names = pod.names_where(lambda container: security_of(container).get("runAsNonRoot") is False)
    setters = name_setters(names, is_pod=of_pod is False)
    if setters:
        return Violation(reason, f"{setters} must not set securityContext.runAsNonRoot=false")
    names = pod.names_where(lambda container: security_of(container).get("runAsNonRoot") is None)
    if of_pod or not names:
        return None
    return Violation(reason, f"pod or {name_containers(names)} must set securityContext.runAsNonRoot=true")


def forbid_root(pod: PodView) -> Violation | None:
    """Refuse the user root."""
    names = pod.names_where(lambda container: security_of(container).get("runAsUser") == 0)
    setters = name_setters(names, is_pod=pod.security.get("runAsUser") == 0)
    return Violation("runAsUser=0", f"{setters} must not set runAsUser=0") if setters else None


def _forbid_capabilities(pod: PodView, permitted: frozenset[str]) -> str:
    """Return the detail of a violation, or an empty text."""
    names = pod.names_where(lambda container: bool(_capabilities(container, "add") - permitted))
    if not names:
        return ""
    added = frozenset[str]().union(*(_capabilities(container, "add") for container in pod.containers)) - permitted
    return f"{name_containers(names)} must not include {quote_all(sorted(added))} in securityContext.capabilities.add"


def _capabilities(container: Document, field: str) -> frozenset[str]:
    return frozenset((security_of(container).get("capabilities") or {}).get(field) or ())
