"""Options of ``podman create`` for devices, mounts and security contexts.

Devices: podman knows devices of ``/etc/cdi`` and ``/var/run/cdi`` by name. Debian's versions read no other directory,
so the edits of devices in other directories become options of their own, where podman has such options.

Mounts: podman splits ``SOURCE:TARGET:OPTIONS`` at the colons and cannot quote one, and its other form splits at commas
and equals signs. A path with a colon would end in options that its user chose, so such a path is refused.
"""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import Final

from drachma import errors
from drachma.node.runtimes.security import LOCALHOST, UNCONFINED, Security, may_give_files
from drachma.nodewire.cdi import registry, spec

_SEPARATOR: Final = ":"
_CAPABILITY: Final = re.compile(r"[A-Za-z0-9_]+")


def device_options(devices: Sequence[str], directories: Sequence[pathlib.Path]) -> list[str]:
    """Return the options that give a container CDI devices.

    Raises:
        errors.InvalidValueError: a device is unknown, or needs an edit that podman has no option for.
    """
    own = registry.read().devices
    unknown = [each for each in devices if each not in own]
    options = [word for each in devices if each in own for word in ("--device", each)]
    return [*options, *edit_options(registry.read(directories).container_edits(unknown))] if unknown else options


def edit_options(edits: spec.ContainerEdits) -> list[str]:
    """Return the options for the edits of CDI devices.

    Raises:
        errors.InvalidValueError: podman has no option for one of them.
    """
    needs = [f"hook {hook.hook_name} ({hook.path})" for hook in edits.hooks]
    needs += [f"network device {each.host_interface_name}" for each in edits.net_devices]
    needs += ["intelRdt"] if edits.intel_rdt is not None else []
    if needs:
        raise errors.InvalidValueError(f"needs {', '.join(needs)}, which podman does in /etc/cdi and /var/run/cdi only")
    options = [word for variable in edits.env for word in ("--env", variable)]
    options += [word for node in edits.device_nodes for word in _node(node)]
    for mount in edits.mounts:
        options += mount_options(mount.host_path, mount.container_path, _options(mount))
    return [*options, *(word for group in edits.additional_gids for word in ("--group-add", str(group)))]


def _node(node: spec.DeviceNode) -> Iterator[str]:
    source = node.host_path or node.path
    for path in (source, node.path):
        check_path(path)
    yield "--device"
    yield f"{source}:{node.path}:{node.permissions or 'rwm'}"


def _options(mount: spec.Mount) -> str:
    """Return the options of a mount without ``bind``, which ``--volume`` implies."""
    return ",".join(each for each in mount.options if each not in ("bind", "rbind"))


def mount_options(source: str, target: str, options: str) -> list[str]:
    """Return the option of ``podman create`` that mounts a path of the machine in a container.

    Raises:
        errors.InvalidValueError: podman would misread a path.
    """
    check_path(source)
    check_path(target)
    return ["--volume", _SEPARATOR.join((source, target, options) if options else (source, target))]


def check_path(path: str) -> None:
    """Check that podman reads a path as a path.

    Raises:
        errors.InvalidValueError: the path has a colon, or would name a volume of podman's.
    """
    if _SEPARATOR in path:
        raise errors.InvalidValueError(f"mount path {path!r}: must not contain '{_SEPARATOR}'")
    if not path.startswith("/"):
        raise errors.InvalidValueError(f"mount path {path!r}: must be absolute")


def unenforced(security: Security) -> list[str]:
    """Return the fields that podman, and the agent for it, cannot enforce."""
    group = security.volume_group
    fields = {
        "hostUsers": security.has_user_namespace,
        "securityContext.fsGroup": group is not None and not may_give_files(group),
        "securityContext.supplementalGroupsPolicy": security.has_strict_groups,
        "securityContext.sysctls": bool(security.sysctls),
        "volumeMounts.recursiveReadOnly": security.has_recursive_read_only,
    }
    return [field for field, is_set in fields.items() if is_set]


def security_options(security: Security, *, image_user: str, profiles: pathlib.Path) -> list[str]:
    """Return the options of ``podman create`` for a security context.

    ``image_user`` is the user of the image, which a group alone needs; ``profiles`` the folder of seccomp profiles.

    Raises:
        errors.InvalidValueError: the name of a capability or profile is invalid.
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
