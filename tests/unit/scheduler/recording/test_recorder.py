"""Recorded kinds, and decisions that are dropped when writing is too slow."""

import io
import pathlib
import time
from typing import Any

import pytest

from drachma.api import gates
from drachma.runtime import informers
from drachma.scheduler import Settings, handlers, queue
from drachma.scheduler.cycle import units
from drachma.scheduler.cycle.decision import Aborted
from drachma.scheduler.recording import Recorder, RecordFile, recorder, recordlines
from drachma.scheduler.snapshot import Snapshot, podinfo
from drachma.testing import manualclock, pod


class Asked(informers.Informers):
    """Informers that note the kinds they are asked for."""

    def __init__(self) -> None:
        super().__init__(None)  # type: ignore[arg-type]
        self.kinds: set[str] = set()

    def of(self, kind: Any, *selection: Any, with_documents: bool = False) -> Any:
        self.kinds.add(kind.__name__)
        return super().of(kind, *selection, with_documents=with_documents)


def test_the_recorder_follows_all_kinds_that_the_scheduler_follows(tmp_path: pathlib.Path) -> None:
    enabled = gates.ALL.switched({gates.Gate.GENERIC_WORKLOAD: True})
    of_scheduler, of_recorder, settings = Asked(), Asked(), Settings(gates=enabled)
    waiting = queue.Queue({}, lambda _: None, monotonic=lambda: 0.0)
    snapshot = Snapshot(enabled)
    handlers.Handlers(snapshot, waiting, settings=settings).register(of_scheduler)
    Recorder(RecordFile(tmp_path / "record"), settings=settings, clock=manualclock.ManualClock()).attach(
        of_recorder, snapshot
    )
    assert {"PodGroup", "DeviceTaintRule"} <= of_recorder.kinds
    assert of_recorder.kinds | {"ResourceClaim"} == of_scheduler.kinds


def test_decisions_that_are_not_written_in_time_are_counted(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "_MOST_BATCHES", 1)
    path = tmp_path / "record"
    file = RecordFile(path)
    made = Recorder(file, settings=Settings(), clock=manualclock.ManualClock())
    made.attach(Asked(), Snapshot(gates.ALL))
    info = podinfo.PodInfo(pod("p").build())
    unit, decision = units.Unit((info,)), Aborted(info, "x")
    for _ in range(4):
        # Nothing is written yet: two batches wait, and two are too many.
        made.decided(unit, decision)
    with file.open():
        while file.backlog:
            time.sleep(0.001)
        made.decided(unit, decision)
    lines = list(recordlines.decode(io.BytesIO(path.read_bytes())))
    assert [each.missed for each in lines if isinstance(each, recordlines.Beginning)] == [0, 2]
    assert [each.number for each in lines if isinstance(each, recordlines.Decision)] == [1, 2, 5]
