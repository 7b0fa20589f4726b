"""Rules for the security contexts of pods and containers. The facts of their types are a containers.Pod."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.validation import constraints, fielderror, rendering, rulenotation
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path

Document = Mapping[str, Any]

_SYSCTL: Final = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL_LENGTH: Final = 253
_is_sysctl: Final = re.compile(_SYSCTL).fullmatch
_CONTAINER_FIELDS: Final = (
    "capabilities", "privileged", "seLinuxOptions", "windowsOptions", "runAsUser", "runAsGroup", "runAsNonRoot",
    "readOnlyRootFilesystem", "allowPrivilegeEscalation", "procMount", "seccompProfile", "appArmorProfile",
)  # fmt: skip


def _proc_mount_of_host(proc_mount: str, at: Path, pod: Any) -> Errors:
    if pod.uses_host_users and proc_mount == "Unmasked":
        detail = "`hostUsers` must be false to use `Unmasked`"
        yield fielderror.invalid(at, rendering.named(proc_mount), detail)


def _check_escalation(context: Document, at: Path) -> Errors:
    if context.get("allowPrivilegeEscalation") is not False:
        return
    if context.get("privileged"):
        detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        yield fielderror.invalid(at, _show(context), detail)
    for capability in (context.get("capabilities") or {}).get("add") or ():
        if capability == "CAP_SYS_ADMIN":
            detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            yield fielderror.invalid(at, _show(context), detail)


def _sysctls(sysctls: Sequence[Document], at: Path) -> Errors:
    previous = set()
    for position, sysctl in enumerate(sysctls):
        name, place = sysctl.get("name", ""), at.item(position).child("name")
        if not name:
            yield fielderror.required(place)
        elif len(name) > _SYSCTL_LENGTH or not _is_sysctl(name):
            detail = f"must have at most {_SYSCTL_LENGTH} characters and match regex ^{_SYSCTL}$"
            yield fielderror.invalid(place, name, detail)
        elif name in previous:
            yield fielderror.duplicate(place, name)
        previous.add(name)


def _check_local_profile(profile: Document, at: Path) -> Errors:
    local, place = profile.get("localhostProfile"), at.child("localhostProfile")
    if profile.get("type") == "Localhost":
        if local is None:
            yield fielderror.required(place, "must be set when seccomp type is Localhost")
        else:
            yield from constraints.relative_path(local, place)
    elif local is not None:
        display = rendering.wire({"Type": profile.get("type", ""), "LocalhostProfile": local})
        yield fielderror.invalid(place, display, "can only be set when seccomp type is Localhost")


def _show(context: Document) -> rendering.Rendered:
    """Return a security context in the form of upstream's internal type."""
    names = {"seLinuxOptions": "SELinuxOptions"}
    fields = ((names.get(field, field[0].upper() + field[1:]), field, None) for field in _CONTAINER_FIELDS)
    return rendering.internal_fields({name: _capitalize(value) for name, value in context.items()}, *fields)


def _capitalize(value: Any) -> Any:
    if isinstance(value, dict):
        return {key[0].upper() + key[1:]: _capitalize(item) for key, item in value.items()}
    return value


TYPES: Final = rulenotation.load("podspec/security", globals())
