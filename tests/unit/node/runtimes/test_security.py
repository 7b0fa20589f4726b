"""Effective security of containers, and containers that may not run as root."""

from typing import Any

import msgspec
import pytest

from drachma.api import hooks, meta
from drachma.node.podview.pod import PodView
from drachma.node.podview.security import Profile
from drachma.node.runtimes import security
from drachma.node.runtimes.security import Security, non_root_violation

POD = meta.ObjectMeta(name="p", namespace="ns", uid="u1")
ABOUT = '(pod: "p_ns(u1)", container: c)'


@pytest.mark.parametrize(
    ("security", "image_user", "want"),
    [
        pytest.param(Security(), "", None, id="nothing-is-asked-for"),
        pytest.param(Security(is_non_root=True, user=7), "", None, id="user"),
        pytest.param(
            Security(is_non_root=True, user=0), "7", "container's runAsUser breaks non-root policy", id="user-root"
        ),
        pytest.param(Security(is_non_root=True), "7:0", None, id="image"),
        pytest.param(
            Security(is_non_root=True), "", "container has runAsNonRoot and image will run as root", id="no-user"
        ),
        pytest.param(
            Security(is_non_root=True), "00", "container has runAsNonRoot and image will run as root", id="image-root"
        ),
        pytest.param(
            Security(is_non_root=True),
            "app:app",
            "container has runAsNonRoot and image has non-numeric user (app), cannot verify user is non-root",
            id="name",
        ),
    ],
)
def test_violations(security: Security, image_user: str, want: str | None) -> None:
    violation = non_root_violation(security, image_user=image_user, pod=POD, container="c")
    assert violation == (None if want is None else f"{want} {ABOUT}")


def _effective(pod: dict[str, Any], container: dict[str, Any]) -> Security:
    spec = {**pod, "containers": [{"name": "c", **container}]}
    view = msgspec.convert({"metadata": {"name": "p"}, "spec": spec}, PodView, dec_hook=hooks.decode)
    return security.effective(view, view.container("c"))


POD_CONTEXT = {
    "securityContext": {
        "runAsUser": 1,
        "runAsGroup": 2,
        "runAsNonRoot": True,
        "supplementalGroups": [3, 4],
        "supplementalGroupsPolicy": "Strict",
        "fsGroup": 4,
        "seccompProfile": {"type": "RuntimeDefault"},
    },
    "hostPID": True,
    "hostUsers": False,
}
OWN = {
    "securityContext": {
        "runAsUser": 9,
        "runAsNonRoot": False,
        "privileged": True,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"add": ["A"], "drop": ["B"]},
        "seccompProfile": {"type": "Unconfined"},
    },
    "volumeMounts": [{"name": "v", "mountPath": "/v", "recursiveReadOnly": "Enabled"}],
}
SHARED = Security(
    user=1,
    group=2,
    groups=(3, 4),
    has_strict_groups=True,
    is_non_root=True,
    seccomp=Profile(type="RuntimeDefault"),
    volume_group=4,
    has_host_pid=True,
    has_user_namespace=True,
)


@pytest.mark.parametrize(
    ("pod", "container", "want"),
    [
        pytest.param({}, {}, Security(), id="none"),
        pytest.param({"securityContext": {}}, {"securityContext": {}}, Security(), id="empty"),
        pytest.param(POD_CONTEXT, {}, SHARED, id="pod"),
        pytest.param(
            POD_CONTEXT,
            OWN,
            msgspec.structs.replace(
                SHARED,
                user=9,
                is_non_root=False,
                is_privileged=True,
                has_read_only_root=True,
                forbids_escalation=True,
                add=("A",),
                drop=("B",),
                seccomp=Profile(type="Unconfined"),
                has_recursive_read_only=True,
            ),
            id="container",
        ),
    ],
)
def test_effective(pod: dict[str, Any], container: dict[str, Any], want: Security) -> None:
    assert _effective(pod, container) == want
