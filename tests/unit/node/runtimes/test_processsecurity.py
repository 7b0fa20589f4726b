"""Security contexts of processes: options that enforce them, and fields that cannot be enforced."""

import os

import pytest

from drachma import errors
from drachma.node.podview.security import Profile, SELinuxOptions, Sysctl
from drachma.node.runtimes import processsecurity
from drachma.node.runtimes.security import Security

UNKNOWN = 123456


@pytest.mark.parametrize(
    ("security", "want"),
    [
        pytest.param(Security(), [], id="none"),
        pytest.param(
            Security(user=UNKNOWN), [f"--reuid={UNKNOWN}", "--regid=65534", "--clear-groups"], id="unknown-user"
        ),
        pytest.param(Security(user=0), ["--reuid=0", "--regid=0", "--clear-groups"], id="root"),
        pytest.param(Security(user=7, group=8), ["--reuid=7", "--regid=8", "--clear-groups"], id="group"),
        pytest.param(Security(groups=(5, 6)), ["--groups=5,6"], id="groups"),
        pytest.param(
            Security(drop=("ALL",), add=("CAP_NET_RAW",)),
            ["--inh-caps=-all", "--bounding-set=-all,+net_raw"],
            id="all-capabilities-but-one",
        ),
        pytest.param(
            Security(drop=("NET_RAW", "SYS_ADMIN"), add=("NET_RAW",)),
            ["--inh-caps=-all", "--bounding-set=-sys_admin"],
            id="one-capability",
        ),
        pytest.param(Security(forbids_escalation=True), ["--no-new-privs"], id="escalation"),
        pytest.param(Security(is_privileged=True, drop=("ALL",)), [], id="privileged"),
    ],
)
def test_words_of_root(security: Security, want: list[str]) -> None:
    assert processsecurity.words(security, as_root=True) == (["setpriv", *want, "--"] if want else [])


def test_words_of_another_user() -> None:
    security = Security(user=UNKNOWN, group=1, groups=(2,), drop=("ALL",))
    assert processsecurity.words(security, as_root=False) == ["setpriv", "--no-new-privs", "--"]


def test_a_capability_without_a_name() -> None:
    with pytest.raises(errors.InvalidValueError, match="'all,\\+sys_admin' is no capability"):
        processsecurity.words(Security(drop=("all,+sys_admin",)), as_root=True)


CONFINED = Security(
    has_user_namespace=True,
    has_read_only_root=True,
    seccomp=Profile(type="RuntimeDefault"),
    app_armor=Profile(type="Localhost"),
    selinux=SELinuxOptions(),
    sysctls=(Sysctl(name="a"),),
    has_recursive_read_only=True,
)
FREE = Security(
    is_privileged=True,
    has_host_pid=True,
    has_host_ipc=True,
    add=("SYS_ADMIN",),
    proc_mount="Unmasked",
    seccomp=Profile(type="Unconfined"),
    app_armor=Profile(type="Unconfined"),
)
OTHER = Security(user=UNKNOWN, group=UNKNOWN, groups=(UNKNOWN, UNKNOWN + 1), volume_group=UNKNOWN + 1, drop=("ALL",))
IDENTITY = ["runAsUser", "runAsGroup", "supplementalGroups", "fsGroup"]


@pytest.mark.parametrize(
    ("security", "as_root", "want"),
    [
        pytest.param(Security(), False, [], id="none"),
        pytest.param(OTHER, True, [], id="identity-of-root"),
        pytest.param(OTHER, False, [f"securityContext.{each}" for each in IDENTITY], id="identity"),
        pytest.param(Security(user=os.geteuid(), group=os.getegid()), False, [], id="own-identity"),
        pytest.param(FREE, True, [], id="what-asks-for-more-keeps-nothing-in"),
        pytest.param(
            CONFINED,
            True,
            [
                "hostUsers",
                "securityContext.readOnlyRootFilesystem",
                "securityContext.seccompProfile",
                "securityContext.appArmorProfile",
                "securityContext.seLinuxOptions",
                "securityContext.sysctls",
                "volumeMounts.recursiveReadOnly",
            ],
            id="confined",
        ),
    ],
)
def test_what_cannot_be_enforced(security: Security, as_root: bool, want: list[str]) -> None:
    assert processsecurity.unenforced(security, as_root=as_root) == want
