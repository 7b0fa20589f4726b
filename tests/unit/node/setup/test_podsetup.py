"""Folders of pods that earlier agents left, and containers whose security is not enforced."""

import pathlib
from collections.abc import Sequence
from typing import Any

import pytest

from drachma.api.pod import Container, Pod
from drachma.node.runtimes import protocol
from drachma.node.runtimes.protocol import Setup, StartError
from drachma.node.runtimes.security import Security
from drachma.node.setup import podsetup
from drachma.testing import pod


async def test_folders_that_earlier_agents_left_are_removed(tmp_path: pathlib.Path) -> None:
    for name in ("gone", "running", "of-a-kubelet"):
        (tmp_path / name / "volumes").mkdir(parents=True)
        if name != "of-a-kubelet":
            (tmp_path / name / ".drachma").touch()
    leftovers = podsetup.find_leftovers(tmp_path, {"running"})
    await podsetup.remove_folders(leftovers)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["of-a-kubelet", "running"]
    assert podsetup.find_leftovers(tmp_path / "missing", set()) == []


class WeakRuntime:
    """A runtime that cannot set a user."""

    name = "weak://1"

    def unenforced(self, work: protocol.Work) -> Sequence[str]:
        return ["securityContext.runAsUser"] if work.setup.security.user is not None else []


def _container(name: str) -> Container:
    return Container(name=name)


def _policy(warnings: list[str], *, is_allowed: bool) -> podsetup.UnenforcedSecurity:
    def warn(_pod: Pod, message: str) -> None:
        warnings.append(message)

    runtime: Any = WeakRuntime()
    return podsetup.UnenforcedSecurity(runtime, is_allowed=is_allowed, warn=warn)


def test_a_container_whose_security_is_not_enforced_is_refused() -> None:
    warnings: list[str] = []
    with pytest.raises(StartError) as error:
        _policy(warnings, is_allowed=False).check(pod("p").build(), _container("c"), Setup(security=Security(user=7)))
    assert error.value.reason == "CreateContainerConfigError"
    assert str(error.value).startswith("container c: runtime weak cannot enforce securityContext.runAsUser;")
    assert warnings == []


def test_such_a_container_runs_with_a_warning_if_that_is_allowed() -> None:
    warnings: list[str] = []
    policy = _policy(warnings, is_allowed=True)
    policy.check(pod("p").build(), _container("c"), Setup(security=Security(user=7)))
    policy.check(pod("p").build(), _container("d"), Setup())
    assert warnings == ["Container c runs without securityContext.runAsUser, which runtime weak cannot enforce"]
