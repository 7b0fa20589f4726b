"""Options of podman for CDI edits, mounts and security contexts."""

import pathlib

import pytest

from drachma import errors
from drachma.node.podview.security import Profile, SELinuxOptions, Sysctl
from drachma.node.runtimes import podmanoptions
from drachma.node.runtimes.security import Security
from drachma.nodewire.cdi.spec import ContainerEdits, DeviceNode, Hook, IntelRdt, Mount, NetDevice


@pytest.mark.parametrize(
    ("edits", "want"),
    [
        pytest.param(ContainerEdits(env=("A=1", "B=")), ["--env", "A=1", "--env", "B="], id="variables"),
        pytest.param(
            ContainerEdits(device_nodes=(DeviceNode(path="/dev/a"),)),
            ["--device", "/dev/a:/dev/a:rwm"],
            id="device-at-the-same-path",
        ),
        pytest.param(
            ContainerEdits(device_nodes=(DeviceNode(path="/dev/a", host_path="/dev/b", permissions="r"),)),
            ["--device", "/dev/b:/dev/a:r"],
            id="device-at-another-path",
        ),
        pytest.param(
            ContainerEdits(mounts=(Mount(host_path="/a", container_path="/b", options=("ro", "bind", "nosuid")),)),
            ["--volume", "/a:/b:ro,nosuid"],
            id="mount-with-options",
        ),
        pytest.param(
            ContainerEdits(mounts=(Mount(host_path="/a", container_path="/b", options=("rbind",)),)),
            ["--volume", "/a:/b"],
            id="mount",
        ),
        pytest.param(ContainerEdits(additional_gids=(5, 6)), ["--group-add", "5", "--group-add", "6"], id="groups"),
    ],
)
def test_edits(edits: ContainerEdits, want: list[str]) -> None:
    assert podmanoptions.edit_options(edits) == want


@pytest.mark.parametrize(
    ("edits", "need"),
    [
        pytest.param(
            ContainerEdits(hooks=(Hook(hook_name="prestart", path="/h"),)), r"hook prestart \(/h\)", id="hook"
        ),
        pytest.param(
            ContainerEdits(net_devices=(NetDevice(host_interface_name="eth1", name="n"),)),
            "network device eth1",
            id="network-device",
        ),
        pytest.param(ContainerEdits(intel_rdt=IntelRdt(clos_id="c")), "intelRdt", id="intel-rdt"),
    ],
)
def test_what_podman_has_no_option_for(edits: ContainerEdits, need: str) -> None:
    with pytest.raises(errors.InvalidValueError, match=f"needs {need}, which"):
        podmanoptions.edit_options(edits)


def test_a_mount() -> None:
    assert podmanoptions.mount_options("/a,b=c", "/x y", "ro") == ["--volume", "/a,b=c:/x y:ro"]
    assert podmanoptions.mount_options("/a", "/b", "") == ["--volume", "/a:/b"]


@pytest.mark.parametrize(
    ("source", "target", "want"),
    [
        pytest.param("/a", "/x:exec,suid,dev", "mount path '/x:exec,suid,dev': must not contain ':'", id="target"),
        pytest.param("/a:/b", "/x", "mount path '/a:/b': must not contain ':'", id="source"),
        pytest.param("name", "/x", "mount path 'name': must be absolute", id="volume-of-podman"),
        pytest.param("/a", "", "mount path '': must be absolute", id="nowhere"),
    ],
)
def test_paths_that_podman_would_take_apart(source: str, target: str, want: str) -> None:
    with pytest.raises(errors.InvalidValueError) as error:
        podmanoptions.mount_options(source, target, "rw")
    assert str(error.value) == want


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
    assert podmanoptions.security_options(security, image_user="app:app", profiles=PROFILES) == want


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
        podmanoptions.security_options(security, image_user="", profiles=PROFILES)


def test_what_podman_cannot_enforce() -> None:
    security = Security(
        has_user_namespace=True, has_strict_groups=True, sysctls=(Sysctl(name="a"),), has_recursive_read_only=True
    )
    assert podmanoptions.unenforced(security) == [
        "hostUsers",
        "securityContext.supplementalGroupsPolicy",
        "securityContext.sysctls",
        "volumeMounts.recursiveReadOnly",
    ]
    assert podmanoptions.unenforced(Security(user=1, drop=("ALL",), seccomp=Profile(type="RuntimeDefault"))) == []
