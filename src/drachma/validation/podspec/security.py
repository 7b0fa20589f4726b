"""Rules for the security contexts of pods and containers: users, groups, profiles, sysctls."""

import re
from collections.abc import Mapping
from typing import Any, Final

from drachma.validation import fielderror, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.validation.podspec import apparmor, choices

_PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
_SYSCTL: Final = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL_LENGTH: Final = 253
_is_sysctl: Final = re.compile(_SYSCTL).fullmatch
_ENUMERATIONS: Final = {
    "fsGroupChangePolicy": ("Always", "OnRootMismatch"),
    "supplementalGroupsPolicy": ("Merge", "Strict"),
    "seLinuxChangePolicy": ("MountOption", "Recursive"),
}


def check_pod(context: Mapping[str, Any], at: Path) -> Errors:
    """What holds for all containers of a pod."""
    for field in ("fsGroup", "runAsUser", "runAsGroup"):
        if context.get(field) is not None:
            yield from choices.user_or_group(context[field], at.child(field))
    for position, group in enumerate(context.get("supplementalGroups") or ()):
        yield from choices.user_or_group(group, at.child("supplementalGroups").item(position))
    yield from _sysctls(context.get("sysctls") or (), at.child("sysctls"))
    yield from _enumeration(context, at, field="fsGroupChangePolicy")
    yield from _profiles(context, at)
    yield from _enumeration(context, at, field="supplementalGroupsPolicy")
    yield from _enumeration(context, at, field="seLinuxChangePolicy")


def check_container(context: Mapping[str, Any], at: Path, *, uses_host_users: bool) -> Errors:
    """What holds for one container."""
    for field in ("runAsUser", "runAsGroup"):
        if context.get(field) is not None:
            yield from choices.user_or_group(context[field], at.child(field))
    proc = context.get("procMount")
    if proc is not None:
        if proc not in ("Default", "Unmasked"):
            yield fielderror.not_supported(at.child("procMount"), rendering.named(proc), ("Default", "Unmasked"))
        if uses_host_users and proc == "Unmasked":
            detail = "`hostUsers` must be false to use `Unmasked`"
            yield fielderror.invalid(at.child("procMount"), rendering.named(proc), detail)
    yield from _seccomp(context.get("seccompProfile"), at.child("seccompProfile"))
    if context.get("allowPrivilegeEscalation") is False and context.get("privileged"):
        detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        yield fielderror.invalid(at, _shown(context), detail)
    if context.get("allowPrivilegeEscalation") is False:
        for capability in (context.get("capabilities") or {}).get("add") or ():
            if capability == "CAP_SYS_ADMIN":
                detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
                yield fielderror.invalid(at, _shown(context), detail)
    yield from apparmor.check(context.get("appArmorProfile"), at.child("appArmorProfile"))


def _profiles(context: Mapping[str, Any], at: Path) -> Errors:
    yield from _seccomp(context.get("seccompProfile"), at.child("seccompProfile"))
    yield from apparmor.check(context.get("appArmorProfile"), at.child("appArmorProfile"))


def _enumeration(context: Mapping[str, Any], at: Path, *, field: str) -> Errors:
    value, supported = context.get(field), _ENUMERATIONS[field]
    if value is not None and value not in supported:
        yield fielderror.not_supported(at.child(field), rendering.named(value), supported)


def _sysctls(sysctls: Any, at: Path) -> Errors:
    seen = set()
    for position, sysctl in enumerate(sysctls):
        name, path = sysctl.get("name", ""), at.item(position).child("name")
        if not name:
            yield fielderror.required(path)
        elif len(name) > _SYSCTL_LENGTH or not _is_sysctl(name):
            detail = f"must have at most {_SYSCTL_LENGTH} characters and match regex ^{_SYSCTL}$"
            yield fielderror.invalid(path, name, detail)
        elif name in seen:
            yield fielderror.duplicate(path, name)
        seen.add(name)


def _seccomp(profile: Mapping[str, Any] | None, at: Path) -> Errors:
    if profile is None:
        return
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    if not kind:
        yield fielderror.required(at.child("type"), "type is required when seccompProfile is set")
    elif kind not in _PROFILES:
        yield fielderror.not_supported(at.child("type"), rendering.named(kind), _PROFILES)
    if kind == "Localhost":
        if local is None:
            yield fielderror.required(at.child("localhostProfile"), "must be set when seccomp type is Localhost")
        else:
            yield from choices.descending(local, at.child("localhostProfile"))
    elif local is not None:
        shown = rendering.wire({"Type": kind, "LocalhostProfile": local})
        detail = "can only be set when seccomp type is Localhost"
        yield fielderror.invalid(at.child("localhostProfile"), shown, detail)


_CONTAINER_FIELDS: Final = (
    "capabilities", "privileged", "seLinuxOptions", "windowsOptions", "runAsUser", "runAsGroup", "runAsNonRoot",
    "readOnlyRootFilesystem", "allowPrivilegeEscalation", "procMount", "seccompProfile", "appArmorProfile",
)  # fmt: skip


def _shown(context: Mapping[str, Any]) -> rendering.Rendered:
    """A security context in the form of upstream's internal type: Go's names, every field."""
    names = {"seLinuxOptions": "SELinuxOptions"}
    fields = (
        f'"{names.get(field, field[0].upper() + field[1:])}":{rendering.wire(_internal(context.get(field)))}'
        for field in _CONTAINER_FIELDS
    )
    return rendering.Rendered("{" + ",".join(fields) + "}")


def _internal(value: Any) -> Any:
    if isinstance(value, dict):
        return {key[0].upper() + key[1:]: _internal(item) for key, item in value.items()}
    return value
