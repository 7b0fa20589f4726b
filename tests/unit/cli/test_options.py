"""What options say as texts."""

import inspect
from collections.abc import Callable

import pytest
from typer.testing import CliRunner

from drachma import allocator, errors
from drachma.cli import options, scheduler, up
from drachma.cli.root import app


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("1h30m", 5400.0, id="hours-and-minutes"),
        pytest.param("90s", 90.0, id="seconds"),
        pytest.param("1.5s", 1.5, id="fraction"),
    ],
)
def test_seconds(text: str, want: float) -> None:
    assert options.seconds(text, name="--event-ttl") == want


@pytest.mark.parametrize("text", ["", "0", "-1h", "soon", "90"])
def test_no_time(text: str) -> None:
    with pytest.raises(errors.InvalidValueError, match=f"--event-ttl '{text}': expected a positive duration"):
        options.seconds(text, name="--event-ttl")


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("first-fit", allocator.Policy.FIRST_FIT, id="default"),
        pytest.param("whole-partitions", allocator.Policy.WHOLE_PARTITIONS, id="named"),
        pytest.param("domain=d.example.com/socket", allocator.OneDomain("d.example.com/socket"), id="domain"),
    ],
)
def test_policies(text: str, want: allocator.Preference) -> None:
    assert options.policy(text) == want


@pytest.mark.parametrize("text", ["", "best", "domain", "domain=", "domain=socket"])
def test_what_is_no_policy(text: str) -> None:
    with pytest.raises(errors.InvalidValueError, match=f"--policy '{text}': expected first-fit, pack, "):
        options.policy(text)


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        pytest.param(["--node-groups", "g.yaml"], "--node-groups: goes with --autoscale only", id="node-groups"),
        pytest.param(["--unneeded", "5"], "--unneeded: goes with --autoscale only", id="unneeded"),
        pytest.param(["--cooldown", "5"], "--cooldown: goes with --autoscale only", id="cooldown"),
        pytest.param(["--record-size", "5"], "--record-size: goes with --record only", id="record-size"),
        pytest.param(["--nodes", "0", "--profile", "mig"], "--profile mig: there are no simulated nodes", id="profile"),
        pytest.param(["--memory", "--data", "d"], "--memory: contradicts --data d", id="memory-and-data"),
        pytest.param(["--name", "Team A"], "--name 'Team A': expected at most 42 lower-case letters", id="name"),
    ],
)
def test_options_that_would_be_ignored_are_refused(arguments: list[str], want: str) -> None:
    result = CliRunner().invoke(app, ["up", *arguments])
    assert isinstance(result.exception, errors.InvalidValueError)
    assert want in str(result.exception)


@pytest.mark.parametrize(
    ("text", "want"), [pytest.param("256Mi", 256 * 2**20, id="mebibytes"), pytest.param("1000000", 10**6, id="bytes")]
)
def test_size_in_bytes(text: str, want: int) -> None:
    assert options.size_in_bytes(text, name="--cache-bytes") == want


@pytest.mark.parametrize("text", ["", "much", "0", "-1Mi"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(errors.InvalidValueError, match=f"--cache-bytes '{text}': "):
        options.size_in_bytes(text, name="--cache-bytes")


@pytest.mark.parametrize("command", [up.up, scheduler.scheduler])
def test_commands_that_schedule_have_one_option_for_the_time_of_a_filter(command: Callable[..., None]) -> None:
    parameter = inspect.signature(command).parameters["filter_timeout"]
    assert (parameter.annotation, parameter.default) == (options.FilterTimeout, 10.0)
