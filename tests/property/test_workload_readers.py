"""Readers of workloads: any damage to a valid file is refused with the file's name, or gives another workload.

Nothing else is raised, times never go backwards, and durations are never negative.
"""

from __future__ import annotations

import copy
import itertools
import json
import pathlib
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drachma import errors
from drachma.cli import when
from drachma.offline import openbtraces, workloadfiles
from drachma.scheduler.recording import recordlines
from drachma.scheduler.settings import Settings
from drachma.simulate.packing import openb
from drachma.simulate.timeline import durations
from drachma.simulate.timeline.events import Arrival, Event

CONTAINERS = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": CONTAINERS, "restartPolicy": "Never"}}
SIMULATED = {
    "apiVersion": "drachma.dev/v1",
    "kind": "SimulatedWorkload",
    "metadata": {"name": "w"},
    "spec": {
        "duration": "1h",
        "jobs": [
            {
                "name": "a",
                "arrivals": {"process": "poisson", "every": "5m", "count": 4},
                "runtime": {"distribution": "choice", "values": ["1m", 2.5], "weights": [1, 2]},
                "pods": {"values": [1, 2], "weights": [1, 1]},
                "template": TEMPLATE,
            },
            {
                "name": "b",
                "arrivals": {"process": "fixed", "every": "20m", "first": "1m", "batch": 2},
                "runtime": {"distribution": "lognormal", "median": "1h", "sigma": 1.5},
                "template": TEMPLATE,
                "gang": True,
                "priority": 5,
            },
            {"name": "c", "arrivals": {"process": "at", "times": ["1m", 90]}, "template": TEMPLATE},
        ],
        "events": [
            {"at": "1m", "fail": ["n1"], "lasting": "5m", "every": "10m"},
            {"at": "2m", "apply": [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2"}}]},
        ],
        "failures": {"meanTimeBetween": "1h", "meanTimeToRepair": "1m"},
    },
}
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {
        "name": "train",
        "labels": {"kueue.x-k8s.io/queue-name": "gold"},
        "annotations": {"drachma.dev/duration": "2h", "drachma.dev/arrival": "10m"},
    },
    "spec": {"parallelism": 2, "completions": 5, "template": TEMPLATE},
}
GENERATOR = {
    "cohorts": [
        {
            "className": "cohort",
            "count": 2,
            "queuesSets": [
                {
                    "className": "cq",
                    "count": 2,
                    "nominalQuota": 20,
                    "borrowingLimit": 100,
                    "reclaimWithinCohort": "Any",
                    "withinClusterQueue": "LowerPriority",
                    "workloadsSets": [
                        {
                            "count": 3,
                            "creationIntervalMs": 100,
                            "workloads": [{"className": "small", "runtimeMs": 200, "priority": 50, "request": 1}],
                        }
                    ],
                }
            ],
        }
    ]
}
SIMKUBE = {
    "version": 2,
    "config": {"trackedObjects": {}},
    "events": [
        {
            "ts": 100,
            "applied_objs": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "metadata": {"name": "web", "namespace": "shop"},
                    "spec": {"replicas": 2, "template": TEMPLATE},
                },
                {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": TEMPLATE}},
            ],
            "deleted_objs": [],
        },
        {
            "ts": 200,
            "applied_objs": [],
            "deleted_objs": [{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}],
        },
    ],
    "index": {},
    "pod_lifecycles": {},
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "default", "uid": "u1", "labels": {"a": "b"}},
    "spec": {"containers": CONTAINERS},
}
RECORDING = [
    msgspec.json.decode(recordlines.encode(recordlines.Beginning(version=recordlines.VERSION, settings=Settings()))),
    {"line": "object", "object": {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}},
    {"line": "object", "object": POD},
    {"line": "decision", "number": 1, "time": "2026-01-01T00:00:00Z", "pod": POD, "node": "n1", "feasible": 1},
    {"line": "gone", "apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": "default"},
    {
        "line": "decision",
        "number": 2,
        "time": "2026-01-01T00:10:00Z",
        "pod": {**POD, "metadata": {"name": "q", "namespace": "default", "uid": "u2"}},
        "reasons": "0/1 nodes are available",
    },
]
OPENB = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
a,4000,100,1,470,T4|P100,LS,Running,50,70,55
b,1000,10,0,0,,BE,Succeeded,20,,
c,1000,10,2,1000,,BE,Succeeded,90,95.5,91
"""
DLRM = """instance_sn,role,app_name,cpu_request,gpu_request,rdma_request,memory_request,disk_request,\
max_instance_per_node,creation_time,scheduled_time,deletion_time
instance_0,HN,app_0,12,1,25,120.0,640.0,8,,100,200
instance_1,CN,app_0,8,0,1,60.0,100.0,8,5,100,
"""
NODES = "sn,cpu_milli,memory_mib,gpu,model\nm1,96000,1024,8,G2\nm2,1000,10,0,\n"
HISTORY = "1h\n30m\n90s\n12.5s\n\n7d\n"

NASTY: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.sampled_from([0, -1, 2**31, 2**63, 1e308, -0.0, 1e-320, float("inf"), float("nan")]),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["", "1h", "-5m", "1e400", "NaN", "1h1h", "9" * 400, "\x00", "é", "fixed", "poisson", "Job", "{}"]),
    st.just([]),
    st.just({}),
    st.lists(st.integers(-2, 3), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(0, 2), max_size=2),
)
PIECES = st.sampled_from(
    [
        "",
        ",",
        "\n",
        "\r",
        "-",
        "x",
        "9" * 20,
        "\x00",
        '"',
        "é",
        "1e400",
        "nan",
        "|",
        ";",
        "\ufeff",
        "\udcff",
        "  ",
        "-1",
    ]
)


def places(content: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values of a document."""
    items: list[tuple[Any, Any]] = []
    if isinstance(content, dict):
        items = list(content.items())
    elif isinstance(content, list):
        items = list(enumerate(content))
    return [path, *(found for key, value in items for found in places(value, (*path, key)))]


@st.composite
def damaged(draw: st.DrawFn, original: Any) -> Any:
    """Return a document in which some values are replaced, removed or given twice."""
    document = copy.deepcopy(original)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from([each for each in places(document) if each]))
        *parents, last = path
        part = document
        for key in parents:
            part = part[key]
        action = draw(st.sampled_from(["replace", "replace", "remove", "double"]))
        if action == "remove":
            del part[last]
        elif action == "double" and isinstance(part, list):
            part.append(copy.deepcopy(part[last]))
        else:
            part[last] = draw(NASTY)
        if not document:
            break
    return document


@st.composite
def damaged_text(draw: st.DrawFn, original: str) -> bytes:
    """Return a text in which some characters are replaced, perhaps by bytes that are not UTF-8."""
    characters = list(original)
    for _ in range(draw(st.integers(1, 6))):
        characters[draw(st.integers(0, len(characters) - 1))] = draw(PIECES)
    return "".join(characters).encode("utf-8", "surrogateescape")


def write(folder: pathlib.Path, name: str, content: bytes) -> pathlib.Path:
    path = folder / name
    path.write_bytes(content)
    return path


def accepted(read: Callable[[], list[Any]], name: str) -> list[Any]:
    """Return what is read; nothing if it is refused, with a message that has the name."""
    try:
        return read()
    except errors.DrachmaError as error:
        message = str(error)
    assert name in message
    return []


def check(path: pathlib.Path) -> None:
    """Read a file as a workload: its events are in order, or the refusal names the file."""

    def read() -> list[Event]:
        files = workloadfiles.WorkloadFiles([str(path)])
        files.objects()
        files.queueing_objects()
        return list(itertools.islice(files.events(seed=1, nodes=["n1"], devices=[("n1", "d")]), 300))

    events = accepted(read, path.name)
    times = [each.time for each in events]
    assert times == sorted(times)
    assert all(time >= 0 for time in times)
    for each in events:
        assert not isinstance(each, Arrival) or each.duration is None or each.duration >= 0


MANY = settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize(
    "original",
    [pytest.param(SIMULATED, id="simulated"), pytest.param(JOB, id="job"), pytest.param(GENERATOR, id="generator")],
)
@MANY
@given(data=st.data())
def test_documents(tmp_path: pathlib.Path, original: Any, data: st.DataObject) -> None:
    check(write(tmp_path, "w.json", json.dumps(data.draw(damaged(original))).encode()))


@MANY
@given(document=damaged(SIMKUBE))
def test_simkube_traces(tmp_path: pathlib.Path, document: Any) -> None:
    try:
        content = msgspec.msgpack.encode(document)
    except (OverflowError, UnicodeEncodeError):
        return
    check(write(tmp_path, "w.sktrace", content))


@MANY
@given(lines=damaged(RECORDING), cut=st.integers(0, 3))
def test_recordings(tmp_path: pathlib.Path, lines: Any, cut: int) -> None:
    content = b"".join(json.dumps(each, separators=(",", ":")).encode() + b"\n" for each in lines)
    check(write(tmp_path, "w.record", content[: len(content) - cut]))


@pytest.mark.parametrize("original", [pytest.param(OPENB, id="openb"), pytest.param(DLRM, id="dlrm")])
@MANY
@given(data=st.data())
def test_traces(tmp_path: pathlib.Path, original: str, data: st.DataObject) -> None:
    path = write(tmp_path, "w.csv", data.draw(damaged_text(original)))
    check(path)
    accepted(lambda: openb.read_tasks(path), path.name)


@MANY
@given(content=damaged_text(NODES))
def test_nodes(tmp_path: pathlib.Path, content: bytes) -> None:
    path = write(tmp_path, "nodes.csv", content)
    accepted(lambda: openbtraces.read_nodes(path), path.name)
    accepted(lambda: openb.read_machines(path), path.name)


@MANY
@given(content=damaged_text(HISTORY))
def test_histories(tmp_path: pathlib.Path, content: bytes) -> None:
    path = write(tmp_path, "history", content)
    assert all(each >= 0 for each in accepted(lambda: list(when.read_history(path)), path.name))


@given(st.one_of(st.text(max_size=12), st.floats(), st.integers()))
def test_durations(value: Any) -> None:
    assert all(0 <= each < float("inf") for each in accepted(lambda: [durations.parse(value, title="field")], "field "))
