"""Requests for logs: the run that the client means, and the kubelet's errors."""

import datetime as dt

import pytest

from drachma.node.endpoint import access, logrequest
from drachma.node.logs.selection import Selection
from drachma.node.pods.containerstate import Record, Running, Terminated, Waiting
from drachma.node.runtimes.protocol import Exit

NOW = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
ENDED = Terminated("process://1", Exit(1), NOW, NOW)


@pytest.mark.parametrize(
    ("record", "previous", "want"),
    [
        pytest.param(Record(Running("process://2", NOW), ENDED, 1), False, "process://2", id="runs"),
        pytest.param(Record(Running("process://2", NOW), ENDED, 1), True, "process://1", id="before"),
        pytest.param(Record(Waiting("CrashLoopBackOff"), ENDED, 1), False, "process://1", id="waits-again"),
        pytest.param(Record(ENDED), False, "process://1", id="ended"),
    ],
)
def test_which_run(record: Record, previous: bool, want: str) -> None:
    assert logrequest.find_run(record, container="c", pod="p", previous=previous) == want


@pytest.mark.parametrize(
    ("record", "previous", "want"),
    [
        pytest.param(
            Record(Running("x", NOW)), True, 'previous terminated container "c" in pod "p" not found', id="previous"
        ),
        pytest.param(Record(), False, 'container "c" in pod "p" is waiting to start: ContainerCreating', id="waits"),
        pytest.param(
            Record(Waiting("ErrImagePull")),
            False,
            'container "c" in pod "p" is waiting to start: image can\'t be pulled',
            id="image",
        ),
    ],
)
def test_no_run(record: Record, previous: bool, want: str) -> None:
    with pytest.raises(logrequest.LogRequestError) as error:
        logrequest.find_run(record, container="c", pod="p", previous=previous)
    assert str(error.value) == want


@pytest.mark.parametrize(
    ("query", "want"),
    [
        pytest.param({}, Selection(), id="everything"),
        pytest.param({"follow": "true", "tailLines": "3"}, Selection(follow=True, tail=3), id="follow"),
        pytest.param({"sinceSeconds": "60"}, Selection(since=NOW - dt.timedelta(seconds=60)), id="since"),
        pytest.param({"sinceTime": "2026-01-02T00:00:00Z"}, Selection(since=NOW), id="since-time"),
        pytest.param({"stream": "Stderr", "timestamps": "1"}, Selection(stream="Stderr", timestamps=True), id="stream"),
    ],
)
def test_which_part(query: dict[str, str], want: Selection) -> None:
    assert logrequest.parse_selection(query, now=NOW) == want


@pytest.mark.parametrize("query", [{"tailLines": "-1"}, {"sinceTime": "yesterday"}, {"limitBytes": "many"}])
def test_queries_that_make_no_sense(query: dict[str, str]) -> None:
    with pytest.raises(logrequest.LogRequestError, match="Unable to decode query"):
        logrequest.parse_selection(query, now=NOW)


@pytest.mark.parametrize(
    ("path", "want"),
    [
        ("/containerLogs/a/b/c", ["proxy"]),
        ("/pods", ["pods", "proxy"]),
        ("/healthz", ["healthz", "proxy"]),
        ("/stats/summary", ["stats"]),
        ("/metrics/resource", ["metrics"]),
        ("/metricsx", ["proxy"]),
    ],
)
def test_what_a_path_is_to_authorisers(path: str, want: list[str]) -> None:
    assert access.subresources(path) == want
