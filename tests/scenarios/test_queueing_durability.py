"""A control plane with queueing is killed at random moments: no job is lost, and none has quota twice."""

import pathlib

from tests.scenarios import queuedurability


def test_jobs_have_quota_once_and_none_is_lost(tmp_path: pathlib.Path) -> None:
    assert queuedurability.rounds(tmp_path / "data", 3, seed=20260303) > 0
