"""The root command: what it lists, and that listing loads nothing."""

import inspect
import subprocess
import sys

import pytest
from typer import testing

from drachma.cli import root


@pytest.mark.parametrize("name", root.COMMANDS)
def test_the_list_says_what_commands_say(name: str) -> None:
    assert inspect.cleandoc(root.load(name).help or "").splitlines()[0] == root.COMMANDS[name]


@pytest.mark.parametrize("name", root.COMMANDS)
def test_every_command_has_help(name: str) -> None:
    answer = testing.CliRunner().invoke(root.app, [name, "--help"], prog_name="drachma")
    assert answer.exit_code == 0
    assert f"Usage: drachma {name}" in answer.output


def test_an_unknown_command_is_refused() -> None:
    answer = testing.CliRunner().invoke(root.app, ["nonsense"])
    assert answer.exit_code == 2
    assert "nonsense" in answer.output


def test_help_loads_no_command() -> None:
    """Whoever looks for a command need not wait for an API server to be imported."""
    script = (
        "import sys\n"
        "from typer import testing\n"
        "from drachma.cli import root\n"
        "assert testing.CliRunner().invoke(root.app, ['--help']).exit_code == 0\n"
        "print(*(name for name in sys.modules if name.startswith('drachma.')))"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert set(answer.stdout.split()) <= {"drachma.cli", "drachma.cli.root", "drachma.errors"}
