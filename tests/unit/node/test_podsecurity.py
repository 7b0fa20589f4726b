"""Effective security contexts: what a container says counts before what its pod says."""

from typing import Any

import msgspec
import pytest

from drachma.api import hooks
from drachma.node import podsecurity
from drachma.node.runningpod import RunningPod
from drachma.node.runtimes.security import Security
from drachma.node.securitycontext import Profile


def _effective(pod: dict[str, Any], container: dict[str, Any]) -> Security:
    spec = {**pod, "containers": [{"name": "c", **container}]}
    of = msgspec.convert({"metadata": {"name": "p"}, "spec": spec}, RunningPod, dec_hook=hooks.decode)
    return podsecurity.effective(of, of.container("c"))


POD = {
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
        pytest.param(POD, {}, SHARED, id="pod"),
        pytest.param(
            POD,
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
