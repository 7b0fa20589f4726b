"""Reading recordings: no line is left out silently, and an absent recording is reported in one line."""

import json
import lzma
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import exclusions, managedfields, vectors

DIFFERENCES = Path(__file__).resolve().parents[2] / "docs" / "differences.md"
RECORDINGS = DIFFERENCES.with_name("recordings.md")


def parameters() -> list[Any]:
    """What a test of the lines of ``some-lines.jsonl`` would be run with."""

    def replay_some_lines(case: vectors.Line) -> None:
        """Stands for a test."""

    marked: Any = vectors.each("some-lines")(replay_some_lines)
    (mark,) = marked.pytestmark
    return list(mark.args[1])


def test_a_test_is_made_of_every_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [{"name": "a", "n": 1}, {"name": "b"}]
    (tmp_path / "some-lines.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    monkeypatch.setenv("DRACHMA_VECTORS", str(tmp_path))
    found = parameters()
    assert [parameter.id for parameter in found] == ["a", "b"]
    assert [parameter.values for parameter in found] == [(lines[0],), (lines[1],)]
    assert not any(parameter.marks for parameter in found)


def test_absent_lines_are_skipped_with_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRACHMA_VECTORS", str(tmp_path))
    monkeypatch.delenv("CI", raising=False)
    (parameter,) = parameters()
    (mark,) = parameter.marks
    assert mark.name == "skip"
    assert mark.kwargs["reason"].startswith(f"recording absent: {tmp_path}/some-lines.jsonl (set DRACHMA_VECTORS")


def test_absent_lines_fail_in_ci(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRACHMA_VECTORS", str(tmp_path))
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=r"^recording absent: .*; it is required because CI is set$"):
        parameters()
    with pytest.raises(pytest.fail.Exception, match="required because CI is set"):
        vectors.openapi("nothing.json")


def test_a_recording_of_the_repository_is_read_where_no_other_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRACHMA_VECTORS", str(tmp_path))
    monkeypatch.setattr(vectors, "OWN", tmp_path / "own")
    (tmp_path / "own").mkdir()
    vectors.own("some-lines").write_bytes(lzma.compress(b'{"name": "kept"}\n'))
    assert [parameter.id for parameter in parameters()] == ["kept"]
    (tmp_path / "some-lines.jsonl").write_text('{"name": "newer"}\n')
    assert [parameter.id for parameter in parameters()] == ["newer"]


def test_a_line_without_its_files_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some-lines.jsonl").write_text('{"name": "a"}\n')
    monkeypatch.setenv("DRACHMA_VECTORS", str(tmp_path))
    monkeypatch.delenv("CI", raising=False)

    def replay_some_lines(case: vectors.Line) -> None:
        """Stands for a test."""

    marked: Any = vectors.each("some-lines", needs=lambda _: [tmp_path / "body.json"])(replay_some_lines)
    (parameter,) = marked.pytestmark[0].args[1]
    (mark,) = parameter.marks
    assert mark.kwargs["reason"].startswith(f"recording absent: {tmp_path}/body.json")


OWN_NAMES = sorted(path.name.removesuffix(".jsonl.xz") for path in vectors.OWN.iterdir())


@pytest.mark.parametrize("name", OWN_NAMES)
def test_a_recording_of_the_repository_is_replayed_and_described(name: str) -> None:
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert f'@vectors.each("{name}"' in tests
    assert f"| {name} |" in RECORDINGS.read_text(encoding="utf-8")


def test_recordings_of_the_repository_are_those_outside() -> None:
    outside = {name: vectors.folder() / f"{name}.jsonl" for name in OWN_NAMES}
    there = {name: path for name, path in outside.items() if path.is_file()}
    if not there:
        pytest.skip(f"{vectors.folder()}: has no recordings to compare with those of the repository")
    copies = {name: lzma.decompress(vectors.own(name).read_bytes()) for name in there}
    assert [name for name, path in there.items() if copies[name] != path.read_bytes()] == []


def test_a_name_must_tell_the_file() -> None:
    def replay_others(case: vectors.Line) -> None:
        """Stands for a test."""

    with pytest.raises(AssertionError, match="replay_others: the name must tell that it replays some-lines"):
        vectors.each("some-lines")(replay_others)


@pytest.mark.parametrize(
    "title",
    [pytest.param(title, id=f"{file}: {title}") for file, titles in exclusions.LINES.items() for title in titles],
)
def test_exclusions_are_explained_to_readers(title: str) -> None:
    section = DIFFERENCES.read_text(encoding="utf-8").partition("## Recorded cases that are left out\n")[2]
    quoted = set(re.findall(r"`([^`]+)`", " ".join(section.split())))
    # The many cases of one function are listed below it.
    of_format = title.removeprefix("string_ext/format/")
    assert title in quoted or (of_format != title and of_format in quoted)


@pytest.mark.parametrize(
    ("ours", "recorded", "want"),
    [
        pytest.param({"managedFields": [1], "a": 1}, {"a": 1}, {"a": 1}, id="not-recorded"),
        pytest.param({"managedFields": [1]}, {"managedFields": [2]}, {"managedFields": [1]}, id="recorded"),
        pytest.param(
            {"items": [{"managedFields": [1]}, {"managedFields": [2]}]},
            {"items": [{"managedFields": [1]}, {}]},
            {"items": [{"managedFields": [1]}, {}]},
            id="recorded-in-one-item",
        ),
        pytest.param([{"managedFields": []}, 1], [{}], [{}, 1], id="more-than-recorded"),
        pytest.param({"a": {"managedFields": []}}, {}, {"a": {}}, id="nothing-there"),
    ],
)
def test_managed_fields_that_were_recorded_are_compared(ours: Any, recorded: Any, want: Any) -> None:
    assert managedfields.as_recorded(ours, recorded) == want
