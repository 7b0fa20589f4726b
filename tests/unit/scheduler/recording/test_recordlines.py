"""Lines of recordings, and malformed files."""

import io

import msgspec
import pytest

from drachma import errors
from drachma.api import codec, gates
from drachma.scheduler import Settings
from drachma.scheduler.recording import recordlines
from drachma.testing import pod

BEGINNING = recordlines.Beginning(version=recordlines.VERSION, settings=Settings(gates=gates.Gates(frozenset())))
GONE = recordlines.Gone(api_version="v1", kind="Node", name="n1")


def read(*texts: bytes) -> list[recordlines.Line | recordlines.Torn]:
    return list(recordlines.decode(io.BytesIO(b"".join(texts))))


def test_lines_come_back_as_they_were() -> None:
    waiting = pod("p").container("c", requests={"cpu": "1"}).build()
    line = recordlines.Nominated(uid="u", pod=msgspec.Raw(codec.encode_json(waiting)), node="n")
    first, second, third = read(recordlines.encode(BEGINNING), recordlines.encode(line), recordlines.encode(GONE))
    assert (first, third) == (BEGINNING, GONE)
    assert isinstance(second, recordlines.Nominated)
    assert codec.decode_json(bytes(second.pod)) == waiting


def test_a_last_line_without_an_end_is_left_out() -> None:
    assert read(recordlines.encode(BEGINNING), recordlines.encode(GONE)[:-1]) == [BEGINNING, recordlines.Torn(2)]


def test_fields_that_nobody_knows_are_passed_over() -> None:
    assert read(
        recordlines.encode(BEGINNING), b'{"line":"gone","apiVersion":"v1","kind":"Node","name":"n1","new":1}\n'
    )[1] == (GONE)


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        pytest.param([recordlines.encode(GONE)], "line 1: a recording starts with a beginning", id="no-beginning"),
        pytest.param(
            [b'{"line":"beginning","version":2,"settings":7}\n'],
            "line 1: the recording has version 2: only version 1 can be read",
            id="another-version",
        ),
        pytest.param([recordlines.encode(BEGINNING), b"{\n"], "line 2: Input data was truncated", id="no-json"),
        pytest.param(
            [recordlines.encode(BEGINNING), b'{"line":"x"}\n'], "line 2: Invalid value 'x'", id="unknown-line"
        ),
        pytest.param([recordlines.encode(BEGINNING), b'{"line":"gone"}\n'], "line 2: .*apiVersion", id="missing-field"),
    ],
)
def test_what_is_no_recording(texts: list[bytes], problem: str) -> None:
    with pytest.raises(errors.DecodeError, match=problem):
        read(*texts)


def test_lines_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recordlines, "MOST_BYTES", 1000)
    with pytest.raises(errors.DecodeError, match="line 1: has more than 1000 bytes"):
        read(b" " * 1001)
