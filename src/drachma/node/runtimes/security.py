"""Effective security of a container, from its own context and its pod's context. Pure, except may_give_files()."""

from __future__ import annotations

import os

import msgspec

from drachma.api import meta
from drachma.node.podview.containers import Container
from drachma.node.podview.pod import PodView
from drachma.node.podview.security import (
    NO_CONTEXT,
    NO_POD_CONTEXT,
    Capabilities,
    Profile,
    SELinuxOptions,
    Sysctl,
)

UNCONFINED = "Unconfined"
LOCALHOST = "Localhost"

_STRICT = "Strict"


class Security(msgspec.Struct, frozen=True, kw_only=True):
    """Effective security context of a container."""

    user: int | None = None
    group: int | None = None
    groups: tuple[int, ...] = ()
    """Supplementary groups, including the group of the pod's volumes."""
    has_strict_groups: bool = False
    """True if groups of the image do not count."""
    is_non_root: bool = False
    """True if the container may not run as root."""
    is_privileged: bool = False
    has_read_only_root: bool = False
    forbids_escalation: bool = False
    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    seccomp: Profile | None = None
    app_armor: Profile | None = None
    selinux: SELinuxOptions | None = None
    proc_mount: str = ""
    sysctls: tuple[Sysctl, ...] = ()
    volume_group: int | None = None
    has_host_pid: bool = False
    has_host_ipc: bool = False
    has_user_namespace: bool = False
    has_recursive_read_only: bool = False
    """True if a volume must be read-only with all mounts below it."""

    @property
    def needs_image_user(self) -> bool:
        """True if the user of the image decides whether or as which user the container runs."""
        return self.user is None and (self.is_non_root or self.group is not None)


def may_give_files(group: int) -> bool:
    """Return True if the agent may give files to a group: as root, or as one of its members."""
    return os.geteuid() == 0 or group in (os.getegid(), *os.getgroups())


def non_root_violation(security: Security, *, image_user: str, pod: meta.ObjectMeta, container: str) -> str | None:
    """Return the kubelet's message if a container that may not run as root would run as root, or None.

    ``image_user`` is the user that the container has if its context names none; empty for root.
    """
    if not security.is_non_root:
        return None
    subject = f'(pod: "{pod.name}_{pod.namespace}({pod.uid})", container: {container})'
    if security.user is not None:
        return f"container's runAsUser breaks non-root policy {subject}" if security.user == 0 else None
    name = image_user.partition(":")[0] or "0"
    if not name.isdigit():
        return (
            f"container has runAsNonRoot and image has non-numeric user ({name}), "
            f"cannot verify user is non-root {subject}"
        )
    return f"container has runAsNonRoot and image will run as root {subject}" if int(name) == 0 else None


def effective(pod: PodView, container: Container) -> Security:
    """Return the security of a container. Fields that its own context leaves out come from the pod's context."""
    own = container.security_context or NO_CONTEXT
    pod_context = pod.spec.security_context or NO_POD_CONTEXT
    capabilities = own.capabilities or Capabilities()
    groups = (*pod_context.supplemental_groups, *(() if pod_context.fs_group is None else (pod_context.fs_group,)))
    is_non_root = pod_context.run_as_non_root if own.run_as_non_root is None else own.run_as_non_root
    return Security(
        user=pod_context.run_as_user if own.run_as_user is None else own.run_as_user,
        group=pod_context.run_as_group if own.run_as_group is None else own.run_as_group,
        groups=tuple(dict.fromkeys(groups)),
        has_strict_groups=pod_context.supplemental_groups_policy == _STRICT,
        is_non_root=bool(is_non_root),
        is_privileged=own.privileged,
        has_read_only_root=own.read_only_root_filesystem,
        forbids_escalation=own.allow_privilege_escalation is False,
        add=capabilities.add,
        drop=capabilities.drop,
        seccomp=own.seccomp_profile or pod_context.seccomp_profile,
        app_armor=own.app_armor_profile or pod_context.app_armor_profile,
        selinux=own.se_linux_options or pod_context.se_linux_options,
        proc_mount=own.proc_mount,
        sysctls=pod_context.sysctls,
        volume_group=pod_context.fs_group,
        has_host_pid=pod.spec.host_pid,
        has_host_ipc=pod.spec.host_ipc,
        has_user_namespace=pod.spec.host_users is False,
        has_recursive_read_only=any(each.recursive_read_only == "Enabled" for each in container.volume_mounts),
    )
