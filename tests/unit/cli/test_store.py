"""``drachma store``: what users type, and what they are told."""

import asyncio
import json
import pathlib

import pytest
from typer import testing

from drachma import errors, store
from drachma.cli import root
from drachma.cli import store as command
from tests.unit.store.test_inspection import flip


def key(number: int) -> store.Key:
    return store.Key("pods", "default", f"p{number}")


@pytest.fixture
def data(tmp_path: pathlib.Path) -> pathlib.Path:
    """The directory of a server that has stopped."""

    async def fill() -> None:
        async with await store.SqliteStore.open(tmp_path / "data") as objects:
            await objects.commit(
                [store.Create(key(number), store.fixed(b'"%s"' % (b"x" * 2000))) for number in range(20)]
            )
            await objects.commit([store.Create(key(30), store.fixed(b"{}"))])

    asyncio.run(fill())
    return tmp_path / "data"


def run(*arguments: object) -> str:
    result = testing.CliRunner().invoke(command.app, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_backup_and_restore(data: pathlib.Path, tmp_path: pathlib.Path) -> None:
    wrote = run("backup", "--data", data, "--to", tmp_path / "b")
    assert wrote.startswith(f"wrote {tmp_path}/b: revision 22 of ")
    assert ", 21 objects, " in wrote
    checked = run("check", "--backup", tmp_path / "b")
    assert checked.split("sha256 ")[1] == wrote.split("sha256 ")[1]
    assert run("restore", "--from", tmp_path / "b", "--data", tmp_path / "new").startswith(f"restored {tmp_path}/b: ")
    compacted = run("compact", "--data", tmp_path / "new")
    assert compacted.startswith(f"compacted {tmp_path}/new: ")


def test_repair_says_what_is_lost(data: pathlib.Path) -> None:
    assert run("repair", "--data", data) == f"{data}: nothing to repair\n"
    (data / "drachma.redo").unlink()
    page = (data / "drachma.db").stat().st_size - 100
    flip(data / "drachma.db", page)
    told = run("repair", "--data", data)
    assert f"fault: data file {data}/drachma.db: damaged: " in told
    assert "last acknowledged revision: unknown" in told
    (folder,) = data.glob("damaged-*")
    report = json.loads((folder / "report.json").read_text())
    assert f"objects: {report['objects']}\n" in told
    assert f"new revisions begin after: {report['firstRevision']}" in told
    assert f"damaged files and report.json: {folder}" in told


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        pytest.param(["check"], "give either --data or --backup", id="check-of-nothing"),
        pytest.param(["check", "--data", "/absent"], "data directory /absent: does not exist", id="check-of-absent"),
        pytest.param(
            ["compact", "--data", "/absent"], "data directory /absent: does not exist", id="compact-of-absent"
        ),
        pytest.param(["backup", "--data", "/absent", "--to", "/b"], "does not exist", id="backup-of-absent"),
        pytest.param(["rewrite", "--data", "/absent"], "no server has it open", id="rewrite-of-absent"),
        pytest.param(
            ["restore", "--from", "/absent", "--data", "/d"], "backup /absent: cannot be read", id="no-backup"
        ),
    ],
)
def test_mistakes_are_named(arguments: list[str], want: str) -> None:
    result = testing.CliRunner().invoke(command.app, arguments)
    assert isinstance(result.exception, errors.DrachmaError)
    assert want in str(result.exception)


@pytest.mark.parametrize("option", ["--encryption-provider-config", "--backup-dir"])
@pytest.mark.parametrize("command_line", [("apiserver",), ("up", "--memory")], ids=["apiserver", "up"])
def test_options_of_the_data_directory_need_one(
    command_line: tuple[str, ...], option: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    result = testing.CliRunner().invoke(root.app, [*command_line, option, "/somewhere"])
    assert isinstance(result.exception, errors.InvalidValueError)
    assert str(result.exception) == f"{option} /somewhere: goes with --data only"


def test_how_long_between_backups_must_be_a_time(tmp_path: pathlib.Path) -> None:
    arguments = ["apiserver", "--data", str(tmp_path), "--backup-dir", str(tmp_path), "--backup-every", "soon"]
    result = testing.CliRunner().invoke(root.app, arguments)
    assert "--backup-every 'soon': expected" in str(result.exception)
