"""Security of one container: the contexts of its pod and its own as one, and the rule for containers without root."""

from __future__ import annotations

import msgspec

from drachma.api import meta
from drachma.node.securitycontext import Profile, SELinuxOptions, Sysctl

UNCONFINED = "Unconfined"
LOCALHOST = "Localhost"


class Security(msgspec.Struct, frozen=True, kw_only=True):
    """Effective security context of a container."""

    user: int | None = None
    group: int | None = None
    groups: tuple[int, ...] = ()
    """Supplementary groups, that of the pod's volumes included."""
    has_strict_groups: bool = False
    """That groups of the image do not count."""
    is_non_root: bool = False
    """That the container may not run as root."""
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
    """That a volume is to be read-only with all mounts below it."""

    @property
    def needs_image_user(self) -> bool:
        """True if it depends on the user of the image whether, or as which user, the container runs."""
        return self.user is None and (self.is_non_root or self.group is not None)


def non_root_violation(security: Security, *, image_user: str, pod: meta.ObjectMeta, container: str) -> str | None:
    """Return why a container that may not run as root would, in the kubelet's words; None where it does not.

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
