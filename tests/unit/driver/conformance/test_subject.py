"""Drivers that others look after: commands start, stop and kill them."""

import pathlib
import sys

import pytest

from drachma import errors
from drachma.driver.conformance.subject import ServiceSubject

DO = (sys.executable, "-S", "-c")


async def test_each_act_is_its_command(tmp_path: pathlib.Path) -> None:
    acts = {name: (*DO, f"open({str(tmp_path / name)!r}, 'w')") for name in ("start", "stop", "kill")}
    subject = ServiceSubject(**acts)
    for act in (subject.start, subject.stop, subject.kill):
        before = len(list(tmp_path.iterdir()))
        await act()
        assert (tmp_path / act.__name__).exists()
        assert len(list(tmp_path.iterdir())) == before + 1


@pytest.mark.parametrize(
    ("command", "want"),
    [
        pytest.param(
            (*DO, "print('no such unit'); raise SystemExit(5)"), "ended with 5: no such unit", id="command-fails"
        ),
        pytest.param(("/no/such/command", "x"), "/no/such/command x: No such file or directory", id="no-command"),
    ],
)
async def test_what_fails_is_told(command: tuple[str, ...], want: str) -> None:
    subject = ServiceSubject(start=command, stop=command, kill=command)
    with pytest.raises(errors.DriverError, match=want):
        await subject.start()
