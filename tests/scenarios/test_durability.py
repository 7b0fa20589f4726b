"""The server process is killed at random moments under concurrent writes: nothing acknowledged is lost."""

import pathlib

from tests.scenarios import durability


def test_nothing_acknowledged_is_lost(tmp_path: pathlib.Path) -> None:
    assert durability.rounds(tmp_path / "data", 4, seed=20260102) > 0
