"""Workloads over time from files: what they become, and how bad values are named."""

import pathlib
import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drachma import errors
from drachma.offline import arrivalorder, openbtraces, workloadfiles
from drachma.simulate.timeline.events import Arrival, ClusterChange, Event, NodeOutage

SIMULATED = """
apiVersion: drachma.dev/v1
kind: SimulatedWorkload
spec:
  duration: 1h
  jobs:
  - name: steady
    arrivals: {process: fixed, every: 20m, first: 5m, batch: 2}
    runtime: {distribution: constant, value: 90s}
    priority: 7
    template:
      spec:
        containers: [{name: c, resources: {limits: {cpu: "2"}}}]
  - name: random
    arrivals: {process: poisson, every: 5m}
    runtime: {distribution: choice, values: [1m, 1h], weights: [3, 1]}
    pods: {values: [1, 2]}
    template: {spec: {containers: [{name: c}]}}
  events:
  - {at: 30m, fail: [n1], lasting: 10m}
  - at: 40m
    apply:
    - {apiVersion: v1, kind: Node, metadata: {name: n2}}
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata:
  name: train
  namespace: team
  labels: {kueue.x-k8s.io/queue-name: gold}
  annotations: {drachma.dev/duration: 2h, drachma.dev/arrival: 10m}
spec:
  parallelism: 2
  completions: 5
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}
"""
OPENB = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time\n"
DLRM = (
    "instance_sn,role,app_name,cpu_request,gpu_request,rdma_request,memory_request,disk_request,"
    "max_instance_per_node,creation_time,deletion_time\n"
)


def read(tmp_path: pathlib.Path, text: str, name: str = "w.yaml") -> workloadfiles.WorkloadFiles:
    path = tmp_path / name
    path.write_text(text)
    return workloadfiles.WorkloadFiles([str(path)])


def events(tmp_path: pathlib.Path, text: str, name: str = "w.yaml", seed: int = 1) -> list[Event]:
    return list(read(tmp_path, text, name).events(seed=seed, nodes=["n1"]))


def test_simulated_workload(tmp_path: pathlib.Path) -> None:
    made = events(tmp_path, SIMULATED)
    steady = [each for each in made if isinstance(each, Arrival) and each.name.startswith("steady")]
    assert [each.time for each in steady] == [300, 300, 1500, 1500, 2700, 2700]
    assert {(each.duration, each.shape.priority) for each in steady} == {(90.0, 7)}
    requests = steady[0].shape.spec.containers[0].resources.requests
    assert str(requests["cpu"]) == "2", "requests default to limits, as on a server"
    drawn = [each for each in made if isinstance(each, Arrival) and each.name.startswith("random")]
    assert {each.duration for each in drawn} <= {60.0, 3600.0}
    assert len({id(each.shape) for each in drawn}) <= 2
    assert [each for each in made if isinstance(each, NodeOutage)] == [NodeOutage(1800, ("n1",), 2400, "failure")]
    assert len([each for each in made if isinstance(each, ClusterChange)]) == 1
    assert [each.time for each in made] == sorted(each.time for each in made)


def test_a_seed_decides_all_arrivals(tmp_path: pathlib.Path) -> None:
    def times(seed: int) -> list[float]:
        return [each.time for each in events(tmp_path, SIMULATED, seed=seed)]

    assert times(1) == times(1) != times(2)


def test_jobs_with_durations(tmp_path: pathlib.Path) -> None:
    (arrival,) = events(tmp_path, JOB)
    assert isinstance(arrival, Arrival)
    assert (arrival.time, arrival.name, arrival.duration) == (600.0, "train", 3 * 7200.0)
    assert (arrival.shape.count, arrival.shape.queue, arrival.shape.namespace) == (2, "gold", "team")


def test_openb_tasks_request_parts_of_gpus(tmp_path: pathlib.Path) -> None:
    text = OPENB + "b,4000,100,1,470,T4|G2,50,70\na,1000,10,0,0,,20,\n"
    files = read(tmp_path, text, "t.csv")
    first, second = files.events(seed=0, nodes=[])
    assert isinstance(first, Arrival)
    assert isinstance(second, Arrival)
    assert (first.name, first.time, first.duration) == ("a", 20, None)
    assert (second.time, second.duration) == (50, 20)
    assert second.shape.spec.resource_claims[0].resource_claim_template_name == "gpu-1x470-g2-t4"
    assert [each.metadata.name for each in files.objects()] == ["gpu-1x470-g2-t4"]


def test_dlrm_instances_request_a_percentage_of_a_card(tmp_path: pathlib.Path) -> None:
    text = DLRM + "instance_0,HN,app_0,12,1,25,120.0,640.0,8,,100\n"
    files = read(tmp_path, text, "d.csv")
    (arrival,) = files.events(seed=0, nodes=[])
    assert isinstance(arrival, Arrival)
    assert (arrival.name, arrival.time, arrival.duration) == ("instance-0", 0.0, 100.0)
    assert [each.metadata.name for each in files.objects()] == ["gpu-1-nic-25"]


def test_openb_nodes_have_gpus_with_a_model(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "n.csv"
    path.write_text("sn,cpu_milli,memory_mib,gpu,model\nm1,96000,1024,8,G2\nm2,1000,10,0,\n")
    kinds = [type(each).__name__ for each in openbtraces.read_nodes(path)]
    assert kinds == ["DeviceClass", "Node", "ResourceSlice", "Node"]


@pytest.mark.parametrize(
    ("before", "after", "want"),
    [
        pytest.param("every: 20m", "every: -1m", r"spec\.jobs\[0\]\.arrivals\.every '-1m': must be a", id="negative"),
        pytest.param("every: 20m", "every: 0s", r"arrivals\.every '0s': must be above 0", id="no-distance"),
        pytest.param("value: 90s", "value: soon", r"spec\.jobs\[0\]\.runtime\.value 'soon'", id="no-duration"),
        pytest.param("process: poisson", "process: magic", r"Invalid value 'magic'.*jobs\[1\]", id="unknown-process"),
        pytest.param("weights: [3, 1]", "weights: [3]", r"jobs\[1\]\.runtime: 1 weights for 2 values", id="weights"),
        pytest.param("fail: [n1]", "fail: [n9]", r"spec\.events\[0\]: there is no node 'n9'", id="unknown-node"),
        pytest.param("name: random", "name: steady", r"spec\.jobs\[1\]\.name 'steady': another", id="name-twice"),
        pytest.param("priority: 7", "prio: 7", r"unknown field `prio`", id="unknown-field"),
        pytest.param('{cpu: "2"}', '{cpu: "x"}', r"jobs\[0\]\.template", id="bad-template"),
        pytest.param("duration: 1h", "duration: 101w1000000d", r"spec\.duration", id="too-long"),
    ],
)
def test_bad_values_are_named(tmp_path: pathlib.Path, before: str, after: str, want: str) -> None:
    assert before in SIMULATED
    with pytest.raises((errors.InvalidValueError, errors.DecodeError), match=want) as caught:
        events(tmp_path, SIMULATED.replace(before, after, 1))
    assert "w.yaml" in str(caught.value)


@pytest.mark.parametrize(
    ("line", "want"),
    [
        pytest.param("t,1,2,1,470,,50,40", "line 2: deletion_time '40': must not be before creation_time 50", id="end"),
        pytest.param("t,1,2,1,470,,x,40", "line 2: creation_time 'x': must be a number", id="no-time"),
        pytest.param("t,1,2,1,470,,nan,40", "line 2: creation_time 'nan': must be a number", id="nan"),
        pytest.param("t,-1,2,1,470,,0,40", "line 2: cpu_milli '-1': must be a whole number", id="negative"),
        pytest.param("t,1,2,9999,1000,,0,40", "line 2: num_gpu '9999'", id="too-many"),
    ],
)
def test_bad_lines_are_named(tmp_path: pathlib.Path, line: str, want: str) -> None:
    with pytest.raises(errors.InvalidValueError, match=r"t\.csv") as caught:
        events(tmp_path, f"{OPENB}{line}\n", "t.csv")
    assert want in str(caught.value)


def test_files_without_a_workload_are_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.InvalidValueError, match=r"w\.yaml: no workload"):
        events(tmp_path, "apiVersion: v1\nkind: Node\nmetadata: {name: n}\n")
    with pytest.raises(errors.InvalidValueError, match="neither a trace of openb"):
        events(tmp_path, "a,b\n1,2\n", "t.csv")


@settings(max_examples=60)
@given(st.integers(0, 10**9))
def test_damaged_traces_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    """Any damage is an InvalidValueError with the file, or changes values; nothing else is raised."""
    rng = random.Random(seed)
    text = list(OPENB + "a,4000,100,1,470,T4,50,70\nb,1000,10,0,0,,20,\n")
    for _ in range(rng.randrange(1, 6)):
        text[rng.randrange(len(text))] = rng.choice(["", ",", "\n", "-", "x", "9" * 20, "\x00", '"', "é", "1e400"])
    path = tmp_path_factory.mktemp("damaged") / "t.csv"
    path.write_text("".join(text))
    message = str(path)
    try:
        files = workloadfiles.WorkloadFiles([str(path)])
        files.objects()
        list(files.events(seed=0, nodes=[]))
    except errors.InvalidValueError as error:
        message = str(error)
    assert "t.csv" in message


def write_tasks(path: pathlib.Path, count: int) -> None:
    with path.open("w") as file:
        file.write(OPENB)
        for number in range(count):
            file.write(f"task-{number},{1000 * (number % 7)},100,1,{number % 5 * 100 + 100},,{number},{number + 60}\n")


def test_large_traces_are_streamed(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten times as many lines need no more memory."""
    monkeypatch.setattr(arrivalorder, "SORTED_BYTES", 1000)
    peaks = []
    for count in (2_000, 20_000):
        path = tmp_path / f"{count}.csv"
        write_tasks(path, count)
        tracemalloc.start()
        files = workloadfiles.WorkloadFiles([str(path)])
        files.objects()
        assert sum(1 for _ in files.events(seed=0, nodes=[])) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2 * peaks[0]


def test_times_backwards_in_large_traces_are_named(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivalorder, "SORTED_BYTES", 10)
    with pytest.raises(errors.InvalidValueError, match=r"t\.csv, line 3: creation_time '20': is before 50"):
        events(tmp_path, OPENB + "b,4000,100,1,470,,50,70\na,1000,10,0,0,,20,\n", "t.csv")


@pytest.mark.parametrize(
    ("content", "want"),
    [
        pytest.param(b"a,1,2,1,470,,5,6\nb,1,2,1,470,,5,6,7,8\n", "line 3: has 10 fields: must have 8", id="fields"),
        pytest.param(b"a,1,2,1,470,,5,6\nb\xff,1,2,1,470,,5,6\n", "line 3: is not UTF-8: invalid start", id="encoding"),
        pytest.param(b"a,1,2,1,470,,5,6\nb," + b"1" * 200_000, "line 3: field larger than", id="field-size"),
    ],
)
def test_broken_lines_are_named(tmp_path: pathlib.Path, content: bytes, want: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(OPENB.encode() + content)
    with pytest.raises(errors.InvalidValueError, match=r"t\.csv") as caught:
        list(openbtraces.OpenbTasks(path).arrivals())
    assert want in str(caught.value)
