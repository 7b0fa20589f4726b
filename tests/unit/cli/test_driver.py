"""``drachma driver check``: which options belong together."""

import pytest
from typer.testing import CliRunner

from drachma import errors
from drachma.cli import driver

RUNNING = ("--socket", "/no/such.sock", "--node", "worker")


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        pytest.param(("--socket", "/no/such.sock"), "--socket needs --node", id="socket-without-node"),
        pytest.param((*RUNNING, "--listen", "127.0.0.1:0"), "--listen needs --kubeconfig-out", id="listen-alone"),
        pytest.param(
            (*RUNNING, "--start-with", "true", "--stop-with", "true"), "--kill-with is missing", id="no-way-to-kill"
        ),
        pytest.param((*RUNNING, "--listen", "here", "--kubeconfig-out", "k"), "expected host:port", id="no-address"),
        pytest.param(("--command", "true", "--listen", "127.0.0.1:0"), "are for --socket", id="listen-for-a-command"),
        pytest.param(("--module", "m:C", "--kill-with", "true"), "are for --socket", id="kill-for-a-module"),
    ],
)
def test_options_that_do_not_go_together(arguments: tuple[str, ...], want: str) -> None:
    result = CliRunner().invoke(driver.app, ["check", *arguments])
    assert isinstance(result.exception, errors.InvalidValueError)
    assert want in str(result.exception)
