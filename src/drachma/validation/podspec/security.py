"""Rules for the security contexts of pods and containers. The facts of their types are a containers.Pod."""

import re
from collections.abc import Sequence
from typing import Any, Final

from drachma.validation import collection, fielderror, rendering, rulenotation
from drachma.validation.fielderror import Errors
from drachma.validation.path import Document, Path

_SYSCTL: Final = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL_LENGTH: Final = 253
_is_sysctl: Final = re.compile(_SYSCTL).fullmatch
_CONTAINER_FIELDS: Final = (
    "capabilities", "privileged", "seLinuxOptions", "windowsOptions", "runAsUser", "runAsGroup", "runAsNonRoot",
    "readOnlyRootFilesystem", "allowPrivilegeEscalation", "procMount", "seccompProfile", "appArmorProfile",
)  # fmt: skip


def _adds_admin(context: Document) -> bool:
    return "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ())


def _local_profile_of_other_type(profile: Document, at: Path) -> Errors:
    display = rendering.wire({"Type": profile.get("type", ""), "LocalhostProfile": profile["localhostProfile"]})
    yield fielderror.invalid(at.child("localhostProfile"), display, "can only be set when seccomp type is Localhost")


def _no_padding(text: str, at: Path) -> Errors:
    if text.strip() != text:
        yield fielderror.invalid(at, text, "must not be padded with whitespace")


def _sysctls(sysctls: Sequence[Document], at: Path) -> Errors:
    for place, _, name, is_repeated in collection.walk_items(sysctls, at):
        if not name:
            yield fielderror.required(place.child("name"))
        elif len(name) > _SYSCTL_LENGTH or not _is_sysctl(name):
            detail = f"must have at most {_SYSCTL_LENGTH} characters and match regex ^{_SYSCTL}$"
            yield fielderror.invalid(place.child("name"), name, detail)
        elif is_repeated:
            yield fielderror.duplicate(place.child("name"), name)


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
