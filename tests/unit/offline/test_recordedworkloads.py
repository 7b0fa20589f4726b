"""Recordings of a scheduler as workloads: pods with their times, and the cluster that comes along."""

import json
import pathlib

import pytest
from typer.testing import CliRunner

from drachma import errors
from drachma.api import codec, node
from drachma.cli import root
from drachma.offline import recordedworkloads
from drachma.scheduler.recording import recordlines
from drachma.scheduler.settings import Settings
from tests.unit.simulate import objects as clusters

NODE, SLICE = clusters.gpu_node("a", 1)


def pod(name: str, **metadata: object) -> dict[str, object]:
    document = codec.encode(clusters.cpu_pod(name, "8"))
    document["metadata"] |= {"uid": f"uid-{name}", **metadata}
    return document


def decision(number: int, minute: int, name: str, node_name: str = "") -> dict[str, object]:
    time = f"2026-01-01T00:{minute:02}:00Z"
    return {"line": "decision", "number": number, "time": time, "pod": pod(name), "node": node_name}


def write(folder: pathlib.Path, *lines: dict[str, object]) -> pathlib.Path:
    path = folder / "decisions"
    beginning = recordlines.encode(recordlines.Beginning(version=recordlines.VERSION, settings=Settings()))
    path.write_bytes(beginning + b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    return path


def gone(name: str) -> dict[str, object]:
    return {"line": "gone", "apiVersion": "v1", "kind": "Pod", "name": name, "namespace": "default"}


def recorded(folder: pathlib.Path) -> pathlib.Path:
    return write(
        folder,
        {"line": "object", "object": codec.encode(NODE)},
        {"line": "object", "object": pod("one")},
        decision(1, 0, "one", "a"),
        {"line": "object", "object": pod("two")},
        decision(2, 5, "two"),
        gone("one"),
        decision(3, 30, "two", "a"),
    )


def test_pods_arrive_and_run_as_recorded(tmp_path: pathlib.Path) -> None:
    workload = recordedworkloads.RecordedWorkload(recorded(tmp_path))
    rows = [(each.time, each.name, each.duration) for each in workload.arrivals()]
    assert rows == [(0.0, "one-0", 1800.0), (300.0, "two-1", None)]
    assert [type(each) for each in workload.objects()] == [node.Node]


def test_a_recording_brings_its_cluster_along(tmp_path: pathlib.Path) -> None:
    arguments = ["simulate", "run", "-w", str(recorded(tmp_path)), "--until", "1h", "-o", "json"]
    result = CliRunner().invoke(root.app, arguments, catch_exceptions=False)
    document = json.loads(result.output)
    assert (document["arrived"], document["started"], document["completed"]) == (2, 2, 1)
    assert document["waits"][0]["most"] == 1500.0, "the second pod waits for the end of the first"


def test_decisions_backwards_are_refused(tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, decision(1, 5, "one"), decision(2, 1, "two"))
    with pytest.raises(errors.InvalidValueError, match=r"decisions: decision at .*: is before"):
        recordedworkloads.RecordedWorkload(path)
