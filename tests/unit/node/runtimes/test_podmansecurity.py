"""Security contexts in podman's words."""

import pathlib

import pytest

from drachma import errors
from drachma.node.runtimes import podmansecurity
from drachma.node.runtimes.security import Security
from drachma.node.securitycontext import Profile, SELinuxOptions, Sysctl

PROFILES = pathlib.Path("/root/seccomp")


def _option(text: str) -> list[str]:
    return ["--security-opt", text]


@pytest.mark.parametrize(
    ("security", "want"),
    [
        pytest.param(Security(), [], id="none"),
        pytest.param(Security(user=1000), ["--user", "1000"], id="user"),
        pytest.param(Security(user=0, group=7), ["--user", "0:7"], id="group"),
        pytest.param(Security(group=7), ["--user", "app:7"], id="group-with-the-user-of-the-image"),
        pytest.param(Security(groups=(5, 6)), ["--group-add", "5", "--group-add", "6"], id="groups"),
        pytest.param(Security(is_privileged=True), ["--privileged"], id="privileged"),
        pytest.param(Security(has_read_only_root=True), ["--read-only", "--read-only-tmpfs=false"], id="read-only"),
        pytest.param(Security(forbids_escalation=True), _option("no-new-privileges"), id="escalation"),
        pytest.param(
            Security(drop=("ALL",), add=("NET_BIND_SERVICE",)),
            ["--cap-drop", "ALL", "--cap-add", "NET_BIND_SERVICE"],
            id="capabilities",
        ),
        pytest.param(Security(seccomp=Profile(type="RuntimeDefault")), [], id="seccomp-default"),
        pytest.param(Security(seccomp=Profile(type="Unconfined")), _option("seccomp=unconfined"), id="seccomp-none"),
        pytest.param(
            Security(seccomp=Profile(type="Localhost", localhost_profile="team/p.json")),
            _option("seccomp=/root/seccomp/team/p.json"),
            id="seccomp-file",
        ),
        pytest.param(
            Security(app_armor=Profile(type="Localhost", localhost_profile="strict")),
            _option("apparmor=strict"),
            id="app-armor",
        ),
        pytest.param(
            Security(selinux=SELinuxOptions(type="t", level="s0:c1,c2")),
            [*_option("label=type:t"), *_option("label=level:s0:c1,c2")],
            id="selinux",
        ),
        pytest.param(Security(proc_mount="Unmasked"), _option("unmask=ALL"), id="proc-mount"),
        pytest.param(
            Security(has_host_pid=True, has_host_ipc=True), ["--pid", "host", "--ipc", "host"], id="namespaces"
        ),
    ],
)
def test_words(security: Security, want: list[str]) -> None:
    assert podmansecurity.words(security, image_user="app:app", profiles=PROFILES) == want


@pytest.mark.parametrize(
    "security",
    [
        pytest.param(Security(add=("NET_ADMIN,SYS_ADMIN",)), id="two-capabilities-as-one"),
        pytest.param(Security(seccomp=Profile(type="Localhost", localhost_profile="../x")), id="profile-upwards"),
        pytest.param(Security(seccomp=Profile(type="Localhost")), id="profile-without-a-name"),
    ],
)
def test_what_has_no_words(security: Security) -> None:
    with pytest.raises(errors.InvalidValueError):
        podmansecurity.words(security, image_user="", profiles=PROFILES)


def test_what_podman_cannot_enforce() -> None:
    security = Security(
        has_user_namespace=True, has_strict_groups=True, sysctls=(Sysctl(name="a"),), has_recursive_read_only=True
    )
    assert podmansecurity.unenforced(security) == [
        "hostUsers",
        "securityContext.supplementalGroupsPolicy",
        "securityContext.sysctls",
        "volumeMounts.recursiveReadOnly",
    ]
    assert podmansecurity.unenforced(Security(user=1, drop=("ALL",), seccomp=Profile(type="RuntimeDefault"))) == []
