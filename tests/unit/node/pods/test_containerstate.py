"""Records that an agent rebuilds from the stored status of containers."""

import datetime as dt
from typing import Any

import msgspec
import pytest

from drachma.node.pods import containerstate
from drachma.node.pods.containerstate import Record, Running, Terminated, Waiting
from drachma.node.podview.pod import PodView
from drachma.node.probes.watching import Stage
from drachma.node.runtimes.protocol import Exit

NOW = dt.datetime(2026, 11, 16, 12, tzinfo=dt.UTC)
THEN = dt.datetime(2026, 11, 16, 11, tzinfo=dt.UTC)
ENDED = {
    "containerID": "x://1",
    "exitCode": 3,
    "reason": "Error",
    "startedAt": "2026-11-16T11:00:00Z",
    "finishedAt": "2026-11-16T11:00:00Z",
}
TERMINATED = Terminated("x://1", Exit(3, "Error"), THEN, THEN)


@pytest.mark.parametrize(
    ("status", "want", "attempt"),
    [
        pytest.param({"state": {"waiting": {"reason": "Why"}}}, Record(Waiting("Why")), None, id="never-began"),
        pytest.param(
            {
                "containerID": "x://2",
                "started": True,
                "restartCount": 1,
                "state": {"running": {"startedAt": "2026-11-16T11:00:00Z"}},
                "lastState": {"terminated": ENDED},
            },
            Record(Running("x://2", THEN, Stage.STARTED), TERMINATED, 1),
            0,
            id="runs-again",
        ),
        pytest.param(
            {"started": True, "ready": True, "state": {"running": {"startedAt": "2026-11-16T11:00:00Z"}}},
            Record(Running("", THEN, Stage.READY)),
            None,
            id="is-ready",
        ),
        pytest.param(
            {"restartCount": 4, "state": {"waiting": {}}, "lastState": {"terminated": ENDED}},
            Record(Waiting(""), TERMINATED, 4),
            4,
            id="about-to-begin-again",
        ),
        pytest.param(
            {"restartCount": 2, "state": {"terminated": ENDED}, "lastState": {"terminated": ENDED}},
            Record(TERMINATED, TERMINATED, 2),
            2,
            id="has-just-ended",
        ),
    ],
)
def test_records(status: dict[str, Any], want: Record, attempt: int | None) -> None:
    view = msgspec.convert({"status": {"containerStatuses": [{"name": "c", **status}]}}, PodView)
    (record,) = containerstate.recall(view, now=NOW).values()
    assert record == want
    assert (None if record.last is None else record.last_attempt) == attempt
