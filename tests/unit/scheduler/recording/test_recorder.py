"""What is recorded, and what becomes of decisions when writing does not keep up."""

import io
import pathlib
import time
from typing import Any

import pytest

from drachma.api import gates
from drachma.runtime import informers
from drachma.scheduler import Settings, handlers, queue
from drachma.scheduler.decision import Aborted
from drachma.scheduler.recording import Recorder, RecordFile, recorder, recordlines
from drachma.scheduler.snapshot import Snapshot, podinfo
from drachma.testing import manualclock, pod


class Asked(informers.Informers):
    """Informers that note which kinds they are asked for."""

    def __init__(self) -> None:
        super().__init__(None)  # type: ignore[arg-type]
        self.kinds: set[str] = set()

    def of(self, kind: Any, *selection: Any) -> Any:
        self.kinds.add(kind.__name__)
        return super().of(kind, *selection)


def test_the_recorder_follows_all_kinds_that_the_scheduler_follows(tmp_path: pathlib.Path) -> None:
    enabled = gates.ALL.switched({gates.Gate.GENERIC_WORKLOAD: True})
    of_scheduler, of_recorder, settings = Asked(), Asked(), Settings(gates=enabled)
    waiting = queue.Queue({}, lambda _: None, monotonic=lambda: 0.0)
    snapshot = Snapshot(enabled)
    handlers.Handlers(snapshot, waiting, chosen=settings).register(of_scheduler)
    Recorder(RecordFile(tmp_path / "record"), chosen=settings, time=manualclock.ManualClock()).attach(
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
    made = Recorder(file, chosen=Settings(), time=manualclock.ManualClock())
    made.attach(Asked(), Snapshot(gates.ALL))
    decision = Aborted(podinfo.PodInfo(pod("p").build()), "x")
    for _ in range(4):
        # Nobody writes yet: two wait to be written, and two are too many.
        made.decided(decision)
    with file.open():
        while file.backlog:
            time.sleep(0.001)
        made.decided(decision)
    lines = list(recordlines.decode(io.BytesIO(path.read_bytes())))
    assert [each.missed for each in lines if isinstance(each, recordlines.Beginning)] == [0, 2]
    assert [each.number for each in lines if isinstance(each, recordlines.Decision)] == [1, 2, 5]
