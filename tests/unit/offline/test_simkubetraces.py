"""Traces of SimKube: replicas over time, pods with their recorded times, and how bad traces are named."""

import contextlib
import pathlib
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drachma import errors
from drachma.offline import simkubetraces, workloadfiles
from drachma.simulate.timeline.events import Arrival

CONTAINERS = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}


def deployment(replicas: int, cpu: str = "1") -> dict[str, Any]:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    spec = {
        "replicas": replicas,
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": spec,
    }


def pod(name: str) -> dict[str, Any]:
    spec = {**CONTAINERS, "nodeName": "somewhere"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop"}, "spec": spec}


def event(time: int, *applied: dict[str, Any], deleted: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {"ts": time, "applied_objs": list(applied), "deleted_objs": list(deleted)}


def write(folder: pathlib.Path, *events: dict[str, Any], lifecycles: Any = None, version: int = 2) -> pathlib.Path:
    path = folder / "t.sktrace"
    document: dict[str, Any] = {
        "version": version,
        "config": {"trackedObjects": {}},
        "events": list(events),
        "index": {},
        "pod_lifecycles": lifecycles or {},
    }
    path.write_bytes(msgspec.msgpack.encode(document))
    return path


def rows(path: pathlib.Path) -> list[tuple[float, str, float | None]]:
    return [(each.time, each.name, each.duration) for each in simkubetraces.SimkubeTrace(path).arrivals()]


def test_replicas_live_as_long_as_a_deployment_asks_for_them(tmp_path: pathlib.Path) -> None:
    path = write(
        tmp_path,
        event(1000, deployment(2)),
        event(1060, deployment(3)),
        event(1100, deployment(1)),
        event(1200, deleted=(deployment(1),)),
    )
    assert rows(path) == [(0.0, "web-1", 100.0), (0.0, "web-0", 200.0), (60.0, "web-2", 40.0)]
    (first, *_) = workloadfiles.WorkloadFiles([str(path)]).events(seed=0, nodes=[])
    assert isinstance(first, Arrival)
    assert (first.shape.namespace, first.shape.labels) == ("shop", {"app": "web"})


def test_a_changed_template_replaces_all_replicas(tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, event(0, deployment(1)), event(50, deployment(1, cpu="2")))
    assert rows(path) == [(0.0, "web-0", 50.0), (50.0, "web-1", None)]


def test_pods_run_as_long_as_in_the_trace(tmp_path: pathlib.Path) -> None:
    lifecycles = {("v1.Pod", "shop/a"): {7: [{"Finished": [105, 135]}]}, ("v1.Pod", "shop/b"): {7: [{"Running": 160}]}}
    path = write(tmp_path, event(100, pod("a")), event(150, pod("b")), lifecycles=lifecycles)
    assert rows(path) == [(0.0, "a-0", 30.0), (50.0, "b-0", None)]


def test_a_cron_job_has_the_runs_of_the_trace(tmp_path: pathlib.Path) -> None:
    template = {"spec": {"template": {"spec": {**CONTAINERS, "restartPolicy": "Never"}}}}
    document = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "tick", "namespace": "shop"},
        "spec": {"schedule": "* * * * *", "jobTemplate": template},
    }
    lifecycles = {("batch/v1.CronJob", "shop/tick"): {1: [{"Finished": [160, 190]}, {"Finished": [220, 250]}]}}
    assert rows(write(tmp_path, event(100, document), lifecycles=lifecycles)) == [
        (60.0, "tick-0", 30.0),
        (120.0, "tick-1", 30.0),
    ]


@pytest.mark.parametrize(
    ("events", "lifecycles", "version", "want"),
    [
        pytest.param([event(5), event(4)], None, 2, r"events\[1\]: ts 4: is before 5", id="backwards"),
        pytest.param([], None, 1, "version 1: expected 2", id="version"),
        pytest.param([event(0, {"kind": "Pod"})], None, 2, r"events\[0\]: expected objects with", id="no-name"),
        pytest.param([event(0, deployment(-1))], None, 2, r"spec.replicas -1: must be a whole number", id="replicas"),
        pytest.param(
            [event(0, {**deployment(1), "kind": "DaemonSet"})], None, 2, "DaemonSets cannot be simulated", id="daemons"
        ),
        pytest.param(
            [event(0)], {("v1.Pod", "a/b"): {1: [{"Finished": [9, 3]}]}}, 2, r"two times in order", id="times"
        ),
    ],
)
def test_bad_traces_are_named(
    tmp_path: pathlib.Path, events: list[dict[str, Any]], lifecycles: Any, version: int, want: str
) -> None:
    with pytest.raises(errors.InvalidValueError, match=want):
        simkubetraces.SimkubeTrace(write(tmp_path, *events, lifecycles=lifecycles, version=version))


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["spec", "name", "replicas"]), inner),
    max_leaves=5,
)


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=60) | st.lists(_VALUES, max_size=3).map(lambda objects: msgspec.msgpack.encode({
    "version": 2,
    "events": [{"ts": 0, "applied_objs": [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": each} for each in objects
    ]}],
})))  # fmt: skip
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "x.sktrace"
    path.write_bytes(content)
    with contextlib.suppress(errors.InvalidValueError):
        list(simkubetraces.SimkubeTrace(path).arrivals())
