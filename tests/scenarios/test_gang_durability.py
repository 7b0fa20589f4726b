"""A control plane with gangs is killed at random moments: no gang runs in part."""

import pathlib

from tests.scenarios import gangdurability


def test_gangs_run_as_a_whole_or_not_at_all(tmp_path: pathlib.Path) -> None:
    assert gangdurability.rounds(tmp_path / "data", 2, seed=20260326) > 0
