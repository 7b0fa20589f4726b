"""Pending workloads: positions in cluster queue and local queue, and parts of long queues."""

from typing import Any

import pytest

from drachma import errors
from drachma.queueing.component import pendingview
from drachma.queueing.component.pendingview import Window
from drachma.queueing.kinds import decoding, workload
from drachma.queueing.workloads.workloadinfo import WorkloadInfo


def waits(name: str, queue: str, *, namespace: str = "ns", priority: int = 0) -> WorkloadInfo:
    document: dict[str, Any] = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": "u", "controller": True},
            ],
        },
        "spec": {"queueName": queue, "priority": priority},
    }
    return WorkloadInfo(decoding.decode(document, workload.Workload), (), "team")


WAITING = [
    waits("a", "red", priority=5),
    waits("b", "blue"),
    waits("c", "red"),
    waits("d", "red", namespace="other"),
    waits("e", "red"),
]


def places(items: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
    return [(each["metadata"]["name"], each["positionInClusterQueue"], each["positionInLocalQueue"]) for each in items]


@pytest.mark.parametrize(
    ("window", "want"),
    [
        pytest.param(Window(), [("a", 0, 0), ("b", 1, 0), ("c", 2, 1), ("d", 3, 0), ("e", 4, 2)], id="all"),
        pytest.param(Window(offset=1, limit=2), [("b", 1, 0), ("c", 2, 1)], id="part"),
        pytest.param(Window(offset=5), [], id="beyond-the-end"),
    ],
)
def test_places_in_a_cluster_queue(window: Window, want: list[tuple[str, int, int]]) -> None:
    assert places(pendingview.list_cluster_queue(WAITING, window)) == want


@pytest.mark.parametrize(
    ("window", "want"),
    [
        pytest.param(Window(), [("a", 0, 0), ("c", 2, 1), ("e", 4, 2)], id="all"),
        pytest.param(Window(offset=1, limit=1), [("c", 2, 1)], id="part"),
    ],
)
def test_places_in_a_local_queue(window: Window, want: list[tuple[str, int, int]]) -> None:
    assert places(pendingview.list_local_queue(WAITING, "ns", "red", window=window)) == want


def test_the_fields_of_a_workload() -> None:
    (item,) = pendingview.list_cluster_queue(WAITING, Window(limit=1))
    assert item == {
        "metadata": {
            "name": "a",
            "namespace": "ns",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": "u"}],
        },
        "priority": 5,
        "localQueueName": "red",
        "positionInClusterQueue": 0,
        "positionInLocalQueue": 0,
    }


@pytest.mark.parametrize(
    ("query", "want"),
    [
        pytest.param({}, Window(0, 1000), id="nothing"),
        pytest.param({"offset": ("3",), "limit": ("7",)}, Window(3, 7), id="both"),
        pytest.param({"limit": ("0",)}, Window(0, 1000), id="no-limit-is-the-default"),
        pytest.param({"offset": ("-3",), "limit": ("-7",)}, Window(0, 0), id="negative"),
        pytest.param({"limit": ("999999999",)}, Window(0, 100_000), id="bounded"),
    ],
)
def test_parameters(query: dict[str, tuple[str, ...]], want: Window) -> None:
    assert Window.parse(query) == want


def test_a_parameter_that_is_no_number_is_refused() -> None:
    with pytest.raises(errors.InvalidValueError, match='limit: "x": expected a whole number'):
        Window.parse({"limit": ("x",)})
