"""Security contexts in podman's words."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator
from typing import Final

from drachma import errors
from drachma.node.runtimes.security import LOCALHOST, UNCONFINED, Security
from drachma.node.volumes import ownership

_CAPABILITY: Final = re.compile(r"[A-Za-z0-9_]+")


def unenforced(security: Security) -> list[str]:
    """Return the fields that podman, and the agent for it, cannot enforce."""
    group = security.volume_group
    fields = {
        "hostUsers": security.has_user_namespace,
        "securityContext.fsGroup": group is not None and not ownership.may_give(group),
        "securityContext.supplementalGroupsPolicy": security.has_strict_groups,
        "securityContext.sysctls": bool(security.sysctls),
        "volumeMounts.recursiveReadOnly": security.has_recursive_read_only,
    }
    return [field for field, is_set in fields.items() if is_set]


def words(security: Security, *, image_user: str, profiles: pathlib.Path) -> list[str]:
    """Return the options of ``podman create`` for a security context.

    ``image_user`` is the user of the image, which a group alone needs; ``profiles`` the folder of seccomp profiles.

    Raises:
        errors.InvalidValueError: a capability or a profile has no name that podman could be told.
    """
    return [
        *_identity(security, image_user),
        *_privileges(security),
        *_confinement(security, profiles),
        *(("--pid", "host") if security.has_host_pid else ()),
        *(("--ipc", "host") if security.has_host_ipc else ()),
    ]


def _identity(security: Security, image_user: str) -> Iterator[str]:
    if security.user is not None or security.group is not None:
        user = image_user.partition(":")[0] or "0" if security.user is None else str(security.user)
        yield from ("--user", user if security.group is None else f"{user}:{security.group}")
    for group in security.groups:
        yield from ("--group-add", str(group))


def _privileges(security: Security) -> Iterator[str]:
    if security.is_privileged:
        yield "--privileged"
    if security.has_read_only_root:
        # Podman would make some directories writable nevertheless.
        yield from ("--read-only", "--read-only-tmpfs=false")
    if security.forbids_escalation:
        yield from ("--security-opt", "no-new-privileges")
    for option, names in (("--cap-drop", security.drop), ("--cap-add", security.add)):
        for name in names:
            if not _CAPABILITY.fullmatch(name):
                raise errors.InvalidValueError(f"securityContext.capabilities: {name!r} is no capability")
            yield from (option, name)


def _confinement(security: Security, profiles: pathlib.Path) -> Iterator[str]:
    seccomp, app_armor, selinux = security.seccomp, security.app_armor, security.selinux
    if seccomp is not None and seccomp.type == UNCONFINED:
        yield from ("--security-opt", "seccomp=unconfined")
    elif seccomp is not None and seccomp.type == LOCALHOST:
        name = seccomp.localhost_profile
        if not name or name.startswith("/") or ".." in name.split("/"):
            raise errors.InvalidValueError(f"securityContext.seccompProfile.localhostProfile: {name!r} is no profile")
        yield from ("--security-opt", f"seccomp={profiles / name}")
    if app_armor is not None and app_armor.type == UNCONFINED:
        yield from ("--security-opt", "apparmor=unconfined")
    elif app_armor is not None and app_armor.type == LOCALHOST:
        yield from ("--security-opt", f"apparmor={app_armor.localhost_profile}")
    if selinux is not None:
        parts = {"user": selinux.user, "role": selinux.role, "type": selinux.type, "level": selinux.level}
        for part, value in parts.items():
            if value:
                yield from ("--security-opt", f"label={part}:{value}")
    if security.proc_mount == "Unmasked":
        yield from ("--security-opt", "unmask=ALL")
