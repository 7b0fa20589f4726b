"""The root command: what it lists, and that listing loads nothing."""

import inspect
import pathlib
import subprocess
import sys

import pytest
from typer import testing

from drachma import errors
from drachma.cli import root


@pytest.mark.parametrize("name", root.COMMANDS)
def test_the_list_says_what_commands_say(name: str) -> None:
    assert inspect.cleandoc(root.load(name).help or "").splitlines()[0] == root.COMMANDS[name]


@pytest.mark.parametrize("name", root.COMMANDS)
def test_every_command_has_help(name: str) -> None:
    answer = testing.CliRunner().invoke(root.app, [name, "--help"], prog_name="drachma")
    assert answer.exit_code == 0
    assert f"Usage: drachma {name}" in answer.output


@pytest.mark.parametrize("name", root.COMMANDS)
def test_help_of_a_narrow_terminal_has_whole_names(name: str) -> None:
    """Options and commands of groups stand in the help as they are typed."""
    answer = testing.CliRunner().invoke(root.app, [name, "--help"], env={"COLUMNS": "80"})
    loaded = root.load(name)
    words = [option for parameter in loaded.params for option in parameter.opts if option.startswith("--")]
    words += getattr(loaded, "commands", {})
    for word in words:
        assert word in answer.output.split() or f"{word}," in answer.output.split(), word


def test_a_mistyped_command_has_a_nearest() -> None:
    answer = testing.CliRunner().invoke(root.app, ["explian", "pod"])
    assert answer.exit_code == 2
    assert "No such command 'explian'. Did you mean 'explain'?" in answer.output


def test_a_mistyped_option_has_a_nearest() -> None:
    answer = testing.CliRunner().invoke(root.app, ["up", "--profil", "mig"])
    assert answer.exit_code == 2
    assert "--profile" in answer.output


@pytest.mark.parametrize(
    ("words", "want"), [("drachma exp", {"explain", "exporter"}), ("drachma up --prof", {"--profile"})]
)
def test_shells_complete(words: str, want: set[str]) -> None:
    environment = {"_DRACHMA_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    answer = testing.CliRunner().invoke(root.app, [], env=environment, prog_name="drachma")
    assert set(answer.output.split()) == want


def test_an_unknown_command_is_refused() -> None:
    answer = testing.CliRunner().invoke(root.app, ["nonsense"])
    assert answer.exit_code == 2
    assert "nonsense" in answer.output


def loaded_modules(*commands: list[str]) -> set[str]:
    """Return drachma's modules that commands import, run in one process of their own."""
    script = (
        "import sys\n"
        "from typer import testing\n"
        "from drachma.cli import root\n"
        f"for arguments in {commands!r}:\n"
        "    result = testing.CliRunner().invoke(root.app, arguments)\n"
        "    assert result.exit_code in (0, 1), result.output\n"
        "print(*(name for name in sys.modules if name.split('.')[0] == 'drachma'))"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(answer.stdout.split())


def test_the_list_of_commands_imports_no_command() -> None:
    assert loaded_modules(["--help"]) == {"drachma", "drachma.cli", "drachma.cli.root", "drachma.errors"}


def test_help_of_all_commands_imports_declarations_only() -> None:
    """Commands import what they run inside their functions, so that their help is there at once."""
    modules = loaded_modules(*([name, "--help"] for name in root.COMMANDS))
    assert len(modules) < len(root.COMMANDS) + 30


def test_tables_of_queues_import_no_queueing_component(tmp_path: pathlib.Path) -> None:
    """The rows need the kinds and states of queues, not the decisions about them."""
    modules = loaded_modules(["get", "queues", "--kubeconfig", str(tmp_path / "none")])
    assert "drachma.cli.inventory.queuerows" in modules
    assert {"drachma.queueing.component.component", "drachma.queueing.workloads.requests"} & modules == set()


def test_explaining_a_pod_in_files_imports_no_server(tmp_path: pathlib.Path) -> None:
    """A new pod is completed by a pure function, without a dispatcher and a store."""
    manifest = tmp_path / "pod.json"
    manifest.write_text(
        '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"},'
        ' "spec": {"containers": [{"name": "c", "image": "i"}]}}'
    )
    modules = loaded_modules(["explain", "pod", "one", "-f", str(manifest)])
    assert not {"drachma.server.pipeline", "drachma.store", "drachma.client.http"} & modules
    assert len(modules) < 500


@pytest.mark.parametrize(
    ("raised", "want_code", "want_lines"),
    [
        pytest.param(errors.DecodeError("bad"), 2, ["drachma: bad"], id="bad-input"),
        pytest.param(errors.UnreachableError("away"), 1, ["drachma: away"], id="anything-else"),
        pytest.param(
            ExceptionGroup("g", [ExceptionGroup("h", [errors.UnreachableError("away")]), errors.DecodeError("bad")]),
            1,
            ["drachma: away", "drachma: bad"],
            id="several-at-once",
        ),
        pytest.param(ExceptionGroup("g", [errors.DecodeError("bad")] * 2), 2, ["drachma: bad"], id="the-same-twice"),
    ],
)
def test_what_is_refused_is_told_in_lines(
    raised: Exception,
    want_code: int,
    want_lines: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail() -> None:
        raise raised

    monkeypatch.setattr(root, "app", fail)
    with pytest.raises(SystemExit) as ended:
        root.main()
    assert ended.value.code == want_code
    assert capsys.readouterr().err.splitlines() == want_lines


def test_a_defect_is_shown_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ExceptionGroup("g", [errors.DecodeError("bad"), KeyError("defect")])

    monkeypatch.setattr(root, "app", fail)
    with pytest.raises(KeyError, match="defect"):
        root.main()
