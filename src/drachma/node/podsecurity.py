"""The effective security context of a container, from its own context and that of its pod. Pure."""

from __future__ import annotations

from drachma.node.runningpod import Container, RunningPod
from drachma.node.runtimes.security import Security
from drachma.node.securitycontext import NO_CONTEXT, NO_POD_CONTEXT, Capabilities

_STRICT = "Strict"


def effective(of: RunningPod, container: Container) -> Security:
    """Return the security of a container: where its own context says nothing, that of the pod counts."""
    own = container.security_context or NO_CONTEXT
    shared = of.spec.security_context or NO_POD_CONTEXT
    capabilities = own.capabilities or Capabilities()
    groups = (*shared.supplemental_groups, *(() if shared.fs_group is None else (shared.fs_group,)))
    is_non_root = shared.run_as_non_root if own.run_as_non_root is None else own.run_as_non_root
    return Security(
        user=shared.run_as_user if own.run_as_user is None else own.run_as_user,
        group=shared.run_as_group if own.run_as_group is None else own.run_as_group,
        groups=tuple(dict.fromkeys(groups)),
        has_strict_groups=shared.supplemental_groups_policy == _STRICT,
        is_non_root=bool(is_non_root),
        is_privileged=own.privileged,
        has_read_only_root=own.read_only_root_filesystem,
        forbids_escalation=own.allow_privilege_escalation is False,
        add=capabilities.add,
        drop=capabilities.drop,
        seccomp=own.seccomp_profile or shared.seccomp_profile,
        app_armor=own.app_armor_profile or shared.app_armor_profile,
        selinux=own.se_linux_options or shared.se_linux_options,
        proc_mount=own.proc_mount,
        sysctls=shared.sysctls,
        volume_group=shared.fs_group,
        has_host_pid=of.spec.host_pid,
        has_host_ipc=of.spec.host_ipc,
        has_user_namespace=of.spec.host_users is False,
        has_recursive_read_only=any(each.recursive_read_only == "Enabled" for each in container.volume_mounts),
    )
