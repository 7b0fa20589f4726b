"""The file of a recording: bounded, and kept when another is begun."""

import pathlib

import pytest

from drachma import errors
from drachma.scheduler.recording import RecordFile


def test_a_full_file_is_put_aside_with_the_next_beginning(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "record"
    file = RecordFile(path, most_bytes=6)
    with file.open():
        file.write([b"state\n"], is_beginning=True)
        file.write([b"one\n", b"two\n"])
        file.write([b"three\n"])
        file.write([b"again\n"], is_beginning=True)
        file.write([b"four\n"])
        file.write([b"not full\n"], is_beginning=True)
    assert (tmp_path / "record.1").read_bytes() == b"state\none\ntwo\nthree\n"
    assert path.read_bytes() == b"again\nfour\nnot full\n"


def test_what_is_there_is_put_aside(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "record"
    path.write_bytes(b"earlier\n")
    with RecordFile(path).open():
        pass
    assert (tmp_path / "record.1").read_bytes() == b"earlier\n"
    assert path.read_bytes() == b""


def test_the_state_at_the_beginning_does_not_count(tmp_path: pathlib.Path) -> None:
    file = RecordFile(tmp_path / "record", most_bytes=6)
    with file.open():
        file.write([b"a state of many bytes\n"], is_beginning=True)
        file.write([b"one\n"])
    assert not file.wants_beginning


def test_a_full_file_wants_a_beginning(tmp_path: pathlib.Path) -> None:
    file = RecordFile(tmp_path / "record", most_bytes=6)
    with file.open():
        file.write([b"state\n"], is_beginning=True)
        file.write([b"one\n", b"two\n"])
    assert file.wants_beginning


def test_a_file_that_cannot_be_written_is_refused(tmp_path: pathlib.Path) -> None:
    with (
        pytest.raises(errors.InvalidValueError, match=r"recording .*: No such file or directory"),
        RecordFile(tmp_path / "no" / "record").open(),
    ):
        pass


def test_a_disk_that_is_full_ends_the_recording_and_nothing_else(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    def failing() -> object:
        yield b"one\n"
        raise OSError(28, "No space left on device")

    path = tmp_path / "record"
    file = RecordFile(path)
    with file.open():
        file.write(failing(), is_beginning=True)  # type: ignore[arg-type]
        file.write([b"two\n"])
    assert file.has_ended
    assert "ends: No space left on device" in caplog.text
    assert path.read_bytes() == b"one\n"
