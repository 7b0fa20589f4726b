"""Checks of kernel confinement: AppArmor and seccomp profiles, SELinux options, sysctls."""

from collections.abc import Collection
from typing import Final

from drachma.server.admission.podsecurity.podviews import (
    Check,
    Document,
    PodView,
    Violation,
    choose_number,
    name_containers,
    name_setters,
    quote_all,
    security_of,
)
from drachma.values import quotation

_APP_ARMOR_PREFIX: Final = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER_PREFIX: Final = "container.seccomp.security.alpha.kubernetes.io/"
_RUNTIME_DEFAULT: Final = "runtime/default"
_LOCALHOST_PREFIX: Final = "localhost/"
_SAFE_TYPES: Final = frozenset({"RuntimeDefault", "Localhost"})
"""Types of AppArmor and seccomp profiles that confine a container."""

_APP_ARMOR: Final = "appArmorProfile"
_SECCOMP: Final = "seccompProfile"


def check_app_armor(pod: PodView) -> Violation | None:
    """Refuse AppArmor profiles that do not confine, in fields and in annotations."""
    annotations = sorted(
        f"{key}={quotation.quote(profile)}"
        for key, profile in pod.annotations.items()
        if key.startswith(_APP_ARMOR_PREFIX) and not _is_safe_app_armor(profile)
    )
    setters = [_profile_setters(pod, _APP_ARMOR)]
    if annotations:
        setters.append(choose_number(len(annotations), "annotation", "annotations"))
    if not any(setters):
        return None
    profiles = [*_bad_types(pod, _APP_ARMOR), *annotations]
    return Violation(
        choose_number(len(profiles), "forbidden AppArmor profile", "forbidden AppArmor profiles"),
        f"{' and '.join(filter(None, setters))} must not set AppArmor profile type to {quote_all(profiles)}",
    )


def check_seccomp_annotations(pod: PodView) -> Violation | None:
    """Refuse seccomp profiles that do not confine, in the annotations of versions before 1.19."""
    keys = [_SECCOMP_POD, *(f"{_SECCOMP_CONTAINER_PREFIX}{container.get('name', '')}" for container in pod.containers)]
    forbidden = sorted(
        {
            f"{key}={quotation.quote(pod.annotations[key])}"
            for key in keys
            if key in pod.annotations and not _is_safe_seccomp(pod.annotations[key])
        }
    )
    if not forbidden:
        return None
    noun = choose_number(len(forbidden), "annotation", "annotations")
    return Violation(_SECCOMP, f"forbidden {noun} {', '.join(forbidden)}")


def check_seccomp(pod: PodView) -> Violation | None:
    """Refuse seccomp profiles that do not confine."""
    setters = _profile_setters(pod, _SECCOMP)
    if not setters:
        return None
    types = quote_all(_bad_types(pod, _SECCOMP))
    return Violation(_SECCOMP, f"{setters} must not set securityContext.seccompProfile.type to {types}")


def require_seccomp(pod: PodView) -> Violation | None:
    """Refuse containers without a seccomp profile that confines them."""
    violation = check_seccomp(pod)
    if violation is not None or pod.security.get(_SECCOMP) is not None:
        return violation
    names = pod.names_where(lambda container: security_of(container).get(_SECCOMP) is None)
    if not names:
        return None
    return Violation(
        _SECCOMP,
        f"pod or {name_containers(names)} must set securityContext.seccompProfile.type to "
        '"RuntimeDefault" or "Localhost"',
    )


def allow_selinux_types(types: Collection[str]) -> Check:
    """Return a check that refuses SELinux users, roles, and types other than these."""

    def check(pod: PodView) -> Violation | None:
        is_pod_bad = is_bad(_selinux_options(pod.security))
        names = pod.names_where(lambda container: is_bad(_selinux_options(security_of(container))))
        if not (is_pod_bad or names):
            return None
        options = [_selinux_options(security) for security in (pod.security, *map(security_of, pod.containers))]
        problems = []
        bad_types = sorted({each["type"] for each in options if has_bad_type(each)})
        if bad_types:
            problems.append(f"{choose_number(len(bad_types), 'type', 'types')} {quote_all(bad_types)}")
        problems += [
            f"{field} may not be set" for field in ("user", "role") if any(each.get(field) for each in options)
        ]
        setters = name_setters(names, is_pod=is_pod_bad)
        detail = f"{setters} set forbidden securityContext.seLinuxOptions: {'; '.join(problems)}"
        return Violation("seLinuxOptions", detail)

    def is_bad(options: Document) -> bool:
        return bool(options.get("user") or options.get("role") or has_bad_type(options))

    def has_bad_type(options: Document) -> bool:
        return bool(options.get("type")) and options["type"] not in types

    return check


def allow_sysctls(names: Collection[str]) -> Check:
    """Return a check that refuses sysctls other than these."""

    def check(pod: PodView) -> Violation | None:
        sysctls = pod.security.get("sysctls") or ()
        forbidden = [sysctl.get("name", "") for sysctl in sysctls if sysctl.get("name", "") not in names]
        return Violation("forbidden sysctls", ", ".join(forbidden)) if forbidden else None

    return check


def _profile_setters(pod: PodView, field: str) -> str:
    names = pod.names_where(lambda container: _has_bad_type(security_of(container), field))
    return name_setters(names, is_pod=_has_bad_type(pod.security, field))


def _bad_types(pod: PodView, field: str) -> list[str]:
    contexts = (pod.security, *map(security_of, pod.containers))
    return sorted({security[field].get("type", "") for security in contexts if _has_bad_type(security, field)})


def _has_bad_type(security: Document, field: str) -> bool:
    profile = security.get(field)
    return profile is not None and profile.get("type", "") not in _SAFE_TYPES


def _is_safe_app_armor(annotation: str) -> bool:
    return annotation in ("", _RUNTIME_DEFAULT) or annotation.startswith(_LOCALHOST_PREFIX)


def _is_safe_seccomp(annotation: str) -> bool:
    return annotation in (_RUNTIME_DEFAULT, "docker/default") or annotation.startswith(_LOCALHOST_PREFIX)


def _selinux_options(security: Document) -> Document:
    options: Document = security.get("seLinuxOptions") or {}
    return options
