"""Data directories: who else may write to one is said."""

import logging
import pathlib

import pytest

from drachma.store import directory


@pytest.mark.parametrize(
    ("mode", "warns"),
    [
        pytest.param(0o777, True, id="everybody"),
        pytest.param(0o770, True, id="the-group"),
        pytest.param(0o755, False, id="readers"),
        pytest.param(0o700, False, id="nobody-else"),
    ],
)
def test_others_who_may_write_are_warned_of(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture, mode: int, *, warns: bool
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(mode)
    with caplog.at_level(logging.WARNING):
        directory.acquire(folder).release()
    assert (f"others may write to it (mode {mode:04o})" in caplog.text) is warns
