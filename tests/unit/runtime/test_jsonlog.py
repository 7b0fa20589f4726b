"""Logs as JSON: a line each, with whatever a record has beside its message."""

import json
import logging
import sys

import pytest

from drachma.runtime import jsonlog


def _line(**more: object) -> dict[str, object]:
    record = logging.makeLogRecord(
        {
            "name": "drachma.x",
            "levelname": "WARNING",
            "levelno": 30,
            "msg": "claim %s",
            "args": ("ns/c",),
            "created": 0.5,
        }
        | more
    )
    line = jsonlog.JsonFormatter().format(record)
    assert "\n" not in line
    document: dict[str, object] = json.loads(line)
    return document


def test_a_record_is_one_line() -> None:
    assert _line() == {
        "time": "1970-01-01T00:00:00.500+00:00",
        "level": "warning",
        "logger": "drachma.x",
        "message": "claim ns/c",
    }


@pytest.mark.parametrize(
    ("value", "want"),
    [
        pytest.param("uid-1", "uid-1", id="text"),
        pytest.param(("A", "B"), ["A", "B"], id="several"),
        pytest.param(Exception("x"), "x", id="what-json-does-not-know"),
    ],
)
def test_what_a_record_has_beside_is_there(value: object, want: object) -> None:
    assert _line(claim=value)["claim"] == want


def test_an_exception_is_told_whole() -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        told = str(_line(exc_info=sys.exc_info())["exception"])
    assert told.startswith("Traceback")
    assert told.endswith("ValueError: broken")


@pytest.mark.parametrize("is_json", [True, False])
def test_all_of_the_process_is_logged_in_one_form(is_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    try:
        jsonlog.set_up(level="warning", is_json=is_json)
        logging.getLogger("anybody").info("not this")
        logging.getLogger("anybody").warning("this")
        said = capsys.readouterr().err
    finally:
        root.handlers[:] = before
        root.setLevel(level)
    assert said.count("\n") == 1
    assert (json.loads(said)["message"] == "this") if is_json else said.endswith("WARNING anybody: this\n")
