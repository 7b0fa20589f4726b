"""Hours of one job."""

from drachma.simulate.timeline.diary import Diary, DiaryRow
from tests.unit.simulate.timeline.histories import History, job, node, shape

HOUR = 3600.0


def diary_of(history: History, key: str, events: list[object], until: float | None = None) -> list[DiaryRow]:
    diary = Diary(key)
    timeline = history.timeline
    timeline.run(events, until=until, progress=lambda now, _: diary.look(timeline.jobs, now))  # type: ignore[arg-type]
    return diary.rows(timeline.now)


def test_hours_name_the_reason_and_the_node() -> None:
    history = History([node("a")])
    events: list[object] = [
        job(0, "long", shape(4), 5 * HOUR),
        job(HOUR, "waits", shape(2), 2 * HOUR),
    ]
    rows = diary_of(history, "default/waits", events)
    assert [(row.begin, row.end) for row in rows] == [(HOUR, 5 * HOUR), (5 * HOUR, 7 * HOUR)]
    assert rows[0].text == "waits: 0/1 nodes are available: 1 Insufficient cpu."
    assert rows[1].text == "runs on a"


def test_an_hour_has_the_reason_that_lasted_longest() -> None:
    history = History([node("a")])
    events: list[object] = [job(0, "first", shape(4), 600.0), job(0, "then", shape(4), 3 * HOUR)]
    rows = diary_of(history, "default/then", events)
    assert [row.text for row in rows] == ["runs on a"]
    assert (rows[0].begin, rows[0].end) == (0, 600.0 + 3 * HOUR)


def test_evictions_are_counted() -> None:
    history = History([node("a")])
    events: list[object] = [
        job(0, "low", shape(4), 3 * HOUR),
        job(HOUR, "high", shape(4, priority=5), 2 * HOUR),
    ]
    rows = diary_of(history, "default/low", events)
    assert [row.text.partition(":")[0] for row in rows] == ["runs on a", "waits", "runs on a"]
    assert rows[1].text.endswith("evicted 1 times so far")
    assert (rows[1].begin, rows[1].end) == (HOUR, 3 * HOUR)


def test_a_job_that_never_arrives_has_no_hours() -> None:
    assert diary_of(History([node("a")]), "default/absent", [job(0, "other", shape(1), 10.0)]) == []
