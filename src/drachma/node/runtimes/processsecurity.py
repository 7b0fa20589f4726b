"""Security contexts of containers that are processes of the machine, as far as setpriv(1) can enforce them."""

from __future__ import annotations

import os
import pwd
import re
from typing import Final, NamedTuple

from drachma import errors
from drachma.node.podview.security import Profile
from drachma.node.runtimes.security import UNCONFINED, Security

_CAPABILITY: Final = re.compile(r"[A-Za-z0-9_]+")
_PREFIX: Final = "cap_"
_ALL: Final = "all"
_NO_GROUP: Final = 65534


class Identity(NamedTuple):
    """User and groups of a process. None for a user or group that stays the agent's."""

    user: int | None
    group: int | None
    groups: tuple[int, ...]


def is_root() -> bool:
    """Return True if the agent may give processes another user."""
    return os.geteuid() == 0


def unenforced(security: Security, *, as_root: bool) -> list[str]:
    """Return the fields that cannot be enforced for a process, by an agent that is root or not."""
    selected = set(security.groups) - set(os.getgroups()) - {os.getegid()}
    fields = {
        "hostUsers": security.has_user_namespace,
        "securityContext.runAsUser": not as_root and security.user not in (None, os.geteuid()),
        "securityContext.runAsGroup": not as_root and security.group not in (None, os.getegid()),
        "securityContext.supplementalGroups": not as_root and bool(selected - {security.volume_group}),
        "securityContext.fsGroup": not as_root and security.volume_group in selected,
        "securityContext.readOnlyRootFilesystem": security.has_read_only_root,
        "securityContext.seccompProfile": _confines(security.seccomp),
        "securityContext.appArmorProfile": _confines(security.app_armor),
        "securityContext.seLinuxOptions": security.selinux is not None,
        "securityContext.sysctls": bool(security.sysctls),
        "volumeMounts.recursiveReadOnly": security.has_recursive_read_only,
    }
    return [field for field, is_set in fields.items() if is_set]


def _confines(profile: Profile | None) -> bool:
    return profile is not None and profile.type != UNCONFINED


def identity(security: Security, *, as_root: bool) -> Identity:
    """Return user and groups of a container's processes.

    A user of the machine has its group there. Any other user has the group 65534; images would give it the group
    of root, but that is a group of the machine here. Supplementary groups of the machine do not count.
    """
    if not as_root:
        return Identity(None, None, ())
    group = security.group
    if group is None and security.user is not None:
        try:
            group = pwd.getpwuid(security.user).pw_gid
        except KeyError:
            group = _NO_GROUP if security.user else 0
    return Identity(security.user, group, security.groups)


def home(user: int) -> str:
    """Return the home directory of a user; ``/`` for a user that the machine does not know."""
    try:
        return pwd.getpwuid(user).pw_dir
    except KeyError:
        return "/"


def words(security: Security, *, as_root: bool) -> list[str]:
    """Return the words before a command that enforce a security context; none if there is nothing to enforce.

    Raises:
        errors.InvalidValueError: the name of a capability is invalid.
    """
    options = _identity_options(identity(security, as_root=as_root))
    options += _capability_options(security, as_root=as_root)
    # So a process of a user without capabilities cannot gain any.
    if security.forbids_escalation or (security.drop and not as_root):
        options.append("--no-new-privs")
    return ["setpriv", *options, "--"] if options else []


def _identity_options(own: Identity) -> list[str]:
    options = [] if own.user is None else [f"--reuid={own.user}"]
    options += [] if own.group is None else [f"--regid={own.group}"]
    if own.groups:
        return [*options, f"--groups={','.join(map(str, own.groups))}"]
    return [*options, "--clear-groups"] if options else []


def _capability_options(security: Security, *, as_root: bool) -> list[str]:
    names = {_capability(name) for name in security.drop}
    if not names or security.is_privileged or not as_root:
        return []
    add = {_capability(name) for name in security.add}
    changes = ["-all", *(f"+{name}" for name in sorted(add - {_ALL}))] if _ALL in names else []
    changes = changes or [f"-{name}" for name in sorted(names - add)]
    return ["--inh-caps=-all", f"--bounding-set={','.join(changes)}"] if changes else []


def _capability(name: str) -> str:
    if not _CAPABILITY.fullmatch(name):
        raise errors.InvalidValueError(f"securityContext.capabilities: {name!r} is no capability")
    return name.lower().removeprefix(_PREFIX)
