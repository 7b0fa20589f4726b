"""Table of the Pod Security Standards: the checks of each level, from which version on, in the order of messages."""

import bisect
from collections.abc import Sequence
from typing import Final, NamedTuple

from drachma.server.admission.podsecurity import hostchecks, podviews, privilegechecks, profilechecks
from drachma.server.admission.podsecurity.podviews import Check, PodView, Violation
from drachma.server.admission.podsecurity.policies import Level, LevelVersion

NEWEST: Final = 37
"""Newest minor version with checks of its own; later ones have the same."""

_SELINUX_1_0: Final = frozenset({"container_t", "container_init_t", "container_kvm_t"})
_SELINUX_1_31: Final = _SELINUX_1_0 | {"container_engine_t"}

_SYSCTLS_1_0: Final = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_syncookies",
    }
)
_SYSCTLS_1_27: Final = _SYSCTLS_1_0 | {"net.ipv4.ip_local_reserved_ports"}
_SYSCTLS_1_29: Final = _SYSCTLS_1_27 | {
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
}
_SYSCTLS_1_32: Final = _SYSCTLS_1_29 | {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}
_SYSCTLS_1_37: Final = _SYSCTLS_1_32 | {"net.ipv4.tcp_notsent_lowat", "net.ipv4.tcp_slow_start_after_idle"}


class Control(NamedTuple):
    """Control of a standard: ``revisions`` are its checks, each with the minor version that it begins with.

    A control of the restricted level may take the place of one of the baseline level, from its first version on.
    """

    name: str
    level: Level
    revisions: tuple[tuple[int, Check], ...]
    replaces: str = ""

    def check_of(self, minor: int) -> Check | None:
        """Return the check of a version, or None for versions before the first."""
        position = bisect.bisect_right(self.revisions, minor, key=lambda revision: revision[0])
        return self.revisions[position - 1][1] if position else None


# Messages have the controls of each level in the order of their names, baseline before restricted.
CONTROLS: Final = (
    Control("appArmorProfile", Level.BASELINE, ((0, profilechecks.check_app_armor),)),
    Control("capabilities_baseline", Level.BASELINE, ((0, privilegechecks.check_added_capabilities),)),
    Control("hostNamespaces", Level.BASELINE, ((0, hostchecks.check_host_namespaces),)),
    Control("hostPathVolumes", Level.BASELINE, ((0, hostchecks.check_host_path),)),
    Control("hostPorts", Level.BASELINE, ((0, hostchecks.check_host_ports),)),
    Control("hostProbesAndHostLifecycle", Level.BASELINE, ((34, hostchecks.check_probe_hosts),)),
    Control("privileged", Level.BASELINE, ((0, privilegechecks.check_privileged),)),
    Control(
        "procMount",
        Level.BASELINE,
        (
            (0, hostchecks.check_proc_mount),
            (35, podviews.except_user_namespaces(hostchecks.check_proc_mount)),
        ),
    ),
    Control(
        "seLinuxOptions",
        Level.BASELINE,
        (
            (0, profilechecks.allow_selinux_types(_SELINUX_1_0)),
            (31, profilechecks.allow_selinux_types(_SELINUX_1_31)),
        ),
    ),
    Control(
        "seccompProfile_baseline",
        Level.BASELINE,
        ((0, profilechecks.check_seccomp_annotations), (19, profilechecks.check_seccomp)),
    ),
    Control(
        "sysctls",
        Level.BASELINE,
        tuple(
            (minor, profilechecks.allow_sysctls(names))
            for minor, names in (
                (0, _SYSCTLS_1_0),
                (27, _SYSCTLS_1_27),
                (29, _SYSCTLS_1_29),
                (32, _SYSCTLS_1_32),
                (37, _SYSCTLS_1_37),
            )
        ),
    ),
    Control("windowsHostProcess", Level.BASELINE, ((0, hostchecks.check_host_process),)),
    Control(
        "allowPrivilegeEscalation",
        Level.RESTRICTED,
        (
            (8, privilegechecks.forbid_escalation),
            (25, podviews.except_windows(privilegechecks.forbid_escalation)),
        ),
    ),
    Control(
        "capabilities_restricted",
        Level.RESTRICTED,
        (
            (22, privilegechecks.require_dropped_capabilities),
            (25, podviews.except_windows(privilegechecks.require_dropped_capabilities)),
        ),
        replaces="capabilities_baseline",
    ),
    Control("procMount_restricted", Level.RESTRICTED, ((35, hostchecks.check_proc_mount),), replaces="procMount"),
    Control("restrictedVolumes", Level.RESTRICTED, ((0, hostchecks.check_volume_types),), replaces="hostPathVolumes"),
    Control(
        "runAsNonRoot",
        Level.RESTRICTED,
        (
            (0, privilegechecks.require_non_root),
            (35, podviews.except_user_namespaces(privilegechecks.require_non_root)),
        ),
    ),
    Control(
        "runAsUser",
        Level.RESTRICTED,
        (
            (23, privilegechecks.forbid_root),
            (35, podviews.except_user_namespaces(privilegechecks.forbid_root)),
        ),
    ),
    Control(
        "seccompProfile_restricted",
        Level.RESTRICTED,
        (
            (19, profilechecks.require_seccomp),
            (25, podviews.except_windows(profilechecks.require_seccomp)),
        ),
        replaces="seccompProfile_baseline",
    ),
)


def checks_of(standard: LevelVersion) -> Sequence[Check]:
    """Return the checks of a level and version; versions of the future have the newest checks."""
    return _TABLE[standard.level][min(standard.minor, NEWEST)]


def _select(level: Level, minor: int) -> tuple[Check, ...]:
    checks = {
        control: check
        for control in CONTROLS
        if control.level <= level and (check := control.check_of(minor)) is not None
    }
    replaced = {control.replaces for control in checks}
    return tuple(check for control, check in checks.items() if control.name not in replaced)


_TABLE: Final = {level: tuple(_select(level, minor) for minor in range(NEWEST + 1)) for level in Level}


class Evaluation(NamedTuple):
    """Violations of a standard, in the order of messages; none if the pod complies."""

    standard: LevelVersion
    violations: tuple[Violation, ...]

    @property
    def reasons(self) -> str:
        """Reasons without fields and values, for a list of many pods."""
        return ", ".join(violation.reason for violation in self.violations)

    @property
    def message(self) -> str:
        """Violations of the pod, for a refusal or, behind ``would``, for a warning."""
        return f'PodSecurity "{self.standard}": {", ".join(map(str, self.violations))}'


def evaluate(pod: PodView, standard: LevelVersion) -> Evaluation:
    """Return the violations of a pod. Takes time in proportion to its containers and volumes."""
    violations = (check(pod) for check in checks_of(standard))
    return Evaluation(standard, tuple(violation for violation in violations if violation is not None))
