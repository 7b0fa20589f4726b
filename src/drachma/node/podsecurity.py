"""The effective security context of a container, from its own context and that of its pod. Pure."""

from __future__ import annotations

from drachma.node.runningpod import Container, RunningPod
from drachma.node.runtimes.security import Security
from drachma.node.securitycontext import NO_CONTEXT, NO_POD_CONTEXT, Capabilities

_STRICT = "Strict"


def effective(pod: RunningPod, container: Container) -> Security:
    """Return the security of a container: where its own context says nothing, that of the pod counts."""
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
