"""Security contexts of pods and containers."""

from __future__ import annotations

from drachma.api.struct import Int64, Struct


class Profile(Struct, frozen=True, kw_only=True):
    """A seccomp or AppArmor profile: Unconfined, RuntimeDefault, or Localhost with a name."""

    type: str = ""
    localhost_profile: str = ""


class SELinuxOptions(Struct, frozen=True, kw_only=True):
    """SELinux labels."""

    user: str = ""
    role: str = ""
    type: str = ""
    level: str = ""


class Capabilities(Struct, frozen=True, kw_only=True):
    """Capabilities to add to the runtime's defaults, and to drop from them."""

    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


class Sysctl(Struct, frozen=True, kw_only=True):
    """A kernel parameter."""

    name: str = ""
    value: str = ""


class SecurityContext(Struct, frozen=True, kw_only=True):
    """Security context of a container."""

    privileged: bool = False
    capabilities: Capabilities | None = None
    se_linux_options: SELinuxOptions | None = None
    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    read_only_root_filesystem: bool = False
    allow_privilege_escalation: bool | None = None
    proc_mount: str = ""
    seccomp_profile: Profile | None = None
    app_armor_profile: Profile | None = None


class PodSecurityContext(Struct, frozen=True, kw_only=True):
    """Security context of a pod, with the defaults for its containers."""

    se_linux_options: SELinuxOptions | None = None
    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    supplemental_groups: tuple[Int64, ...] = ()
    supplemental_groups_policy: str = ""
    fs_group: Int64 | None = None
    fs_group_change_policy: str = ""
    sysctls: tuple[Sysctl, ...] = ()
    seccomp_profile: Profile | None = None
    app_armor_profile: Profile | None = None


NO_CONTEXT = SecurityContext()
NO_POD_CONTEXT = PodSecurityContext()
