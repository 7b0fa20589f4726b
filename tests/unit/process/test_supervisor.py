"""Numbers of processes, and which components each of them has."""

import os

import pytest

from drachma import errors
from drachma.process import supervisor, worker
from drachma.runtime import KeyPair

SCHEDULER = worker.Role("scheduler", has_scheduler=True)


@pytest.mark.parametrize(
    ("processes", "has_nodes", "want"),
    [
        pytest.param(1, True, (), id="one"),
        pytest.param(
            2, True, (worker.Role("components", has_controllers=True, has_scheduler=True, has_nodes=True),), id="two"
        ),
        pytest.param(
            3, True, (SCHEDULER, worker.Role("controllers", has_controllers=True, has_nodes=True)), id="three"
        ),
        pytest.param(
            4,
            True,
            (SCHEDULER, worker.Role("controllers", has_controllers=True), worker.Role("nodes", has_nodes=True)),
            id="four",
        ),
        pytest.param(9, False, (SCHEDULER, worker.Role("controllers", has_controllers=True)), id="without-nodes"),
    ],
)
def test_roles(processes: int, has_nodes: bool, want: tuple[worker.Role, ...]) -> None:
    assert supervisor.roles(processes, has_nodes=has_nodes) == want


def test_every_component_runs_exactly_once() -> None:
    for processes in range(2, 6):
        roles = supervisor.roles(processes, has_nodes=True)
        for name in ("has_controllers", "has_scheduler", "has_nodes"):
            assert sum(getattr(role, name) for role in roles) == 1


def test_auto_is_the_number_of_usable_cores_up_to_four() -> None:
    assert supervisor.parse_count("auto") == min(4, len(os.sched_getaffinity(0)))
    assert supervisor.parse_count("3") == 3


@pytest.mark.parametrize("text", ["0", "-1", "many", "", "1.5", "²"])
def test_a_bad_number_is_refused(text: str) -> None:
    with pytest.raises(errors.InvalidValueError, match="--processes"):
        supervisor.parse_count(text)


def test_keys_are_not_printed() -> None:
    secrets = worker.Secrets(signing=KeyPair(b"c", b"private"), account_key=b"private")
    assert "private" not in repr(secrets)
