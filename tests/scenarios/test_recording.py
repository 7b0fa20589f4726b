"""Decisions of a running scheduler, recorded, and repeated from the command line."""

import asyncio
import json
import pathlib
from typing import Any

import pytest
from msgspec import structs
from typer.testing import CliRunner, Result

from drachma import testing
from drachma.api import codec, gates, pod
from drachma.api import node as nodes
from drachma.cli.root import app
from drachma.scheduler.snapshot import gangs
from drachma.simulate import livecluster
from tests.scenarios import controlplane, schedulers

DRIVER = "gpu.example.com"


def gpu_node(name: str, count: int) -> list[Any]:
    devices = [f"gpu-{number}" for number in range(count)]
    slices = testing.resource_slice(f"{name}-gpus", driver=DRIVER, pool=name).on_node(name).devices(*devices)
    return [testing.node(name), slices]


def gpu_pod(name: str) -> pod.Pod:
    made = testing.pod(name).claim("gpu", template="gpu").container("c", claims=("gpu",))
    return schedulers.completed(made.build())


async def record(path: pathlib.Path) -> None:
    """Two nodes with a device each, three pods that want one, and room for the third in the end."""
    async with controlplane.control_plane(schedulers=0) as plane:
        plane.launch_scheduler("scheduler", record=path)
        await plane.create(
            testing.device_class(DRIVER, f'device.driver == "{DRIVER}"'),
            testing.claim_template("gpu").request("r", device_class=DRIVER, count=1, mode="ExactCount"),
            *gpu_node("n1", 1),
            *gpu_node("n2", 1),
        )
        await plane.create(gpu_pod("a"), gpu_pod("b"), gpu_pod("c"))
        await plane.advance(1)
        objects = (await livecluster.read(plane.client)).objects
        items = b",".join(map(codec.encode_json, objects))
        path.with_name("dump").mkdir()
        (path.with_name("dump") / "all.json").write_bytes(b'{"apiVersion":"v1","kind":"List","items":[%s]}' % items)
        await plane.delete(pod.Pod, "a")
        await plane.advance(30)
        await plane.delete(nodes.Node, "n2")
        await plane.create(schedulers.completed(testing.pod("d").build()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A recording, and a dump of the cluster at the moment when the third pod waits."""
    folder = tmp_path_factory.mktemp("recording")
    asyncio.run(record(folder / "decisions"))
    return folder


@pytest.fixture
def recording(folder: pathlib.Path) -> str:
    return (folder / "decisions").read_text(encoding="utf-8")


def run(tmp_path: pathlib.Path, text: str, *arguments: str) -> Result:
    file = tmp_path / "file"
    file.write_text(text, encoding="utf-8")
    return CliRunner().invoke(app, ["replay", str(file), *arguments], catch_exceptions=True)


def decisions(text: str) -> list[dict[str, Any]]:
    lines = map(json.loads, text.splitlines())
    return [line for line in lines if line["line"] == "decision"]


def test_what_is_recorded(recording: str) -> None:
    made = decisions(recording)
    assert [each["number"] for each in made] == list(range(1, len(made) + 1))
    placed = {each["pod"]["metadata"]["name"]: each["node"] for each in made if "node" in each}
    assert sorted(placed) == ["a", "b", "c", "d"]
    assert placed["c"] == placed["a"]
    refused = [each for each in made if "reasons" in each]
    assert {each["pod"]["metadata"]["name"] for each in refused} == {"c"}
    assert refused[0]["reasons"] == "0/2 nodes are available: 2 cannot allocate all claims."


def test_all_come_out_the_same(recording: str, tmp_path: pathlib.Path) -> None:
    result = run(tmp_path, recording)
    assert (result.exit_code, result.stdout) == (0, f"{len(decisions(recording))} decisions come out as recorded\n")


def test_decisions_are_chosen_by_number_and_pod(recording: str, tmp_path: pathlib.Path) -> None:
    assert run(tmp_path, recording, "--pod", "d").stdout == "1 decision comes out as recorded\n"
    assert run(tmp_path, recording, "--from", "2", "--pod", "default/a").stdout.startswith("0 decisions")


def test_a_changed_node_is_found_out(recording: str, tmp_path: pathlib.Path) -> None:
    """A node had less than the recording says now: the first pod could not have gone there."""
    lines = [json.loads(line) for line in recording.splitlines()]
    first = next(line for line in lines if line["line"] == "decision")
    for line in lines:
        if line["line"] == "object" and line["object"]["metadata"]["name"] == f"{first['node']}-gpus":
            line["object"]["spec"]["devices"] = []
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    result = run(tmp_path, text)
    other = {"n1": "n2", "n2": "n1"}[first["node"]]
    assert result.exit_code == 1
    shown = result.stdout.splitlines()
    assert shown[0] == "0 decisions come out as recorded"
    assert shown[1].startswith("decision 1, ")
    assert shown[1].endswith("pod default/a: comes out otherwise")
    assert shown[2] == f"  recorded: on node {first['node']}"
    assert f"  now: on node {other}" in shown
    assert f"  node {first['node']}: cannot allocate all claims" in shown
    document = json.loads(run(tmp_path, text, "-o", "json").stdout)
    assert document["difference"]["recorded"]["node"] == first["node"]
    assert document["difference"]["replayed"]["node"] == other


def test_changed_reasons_are_explained(recording: str, tmp_path: pathlib.Path) -> None:
    text = recording.replace("2 cannot allocate all claims", "2 Insufficient cpu")
    result = run(tmp_path, text)
    assert result.exit_code == 1
    assert "  recorded: 0/2 nodes are available: 2 Insufficient cpu." in result.stdout
    assert "  now: 0/2 nodes are available: 2 cannot allocate all claims." in result.stdout
    assert "gpu-0" in result.stdout


def test_a_torn_recording_is_replayed_as_far_as_it_goes(recording: str, tmp_path: pathlib.Path) -> None:
    whole = recording.splitlines(keepends=True)
    result = run(tmp_path, "".join(whole[:-1]) + whole[-1][:20])
    assert result.exit_code == 0
    assert f"line {len(whole)}: is incomplete and is left out" in result.stderr


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("{}\n", "line 1: ", id="no-recording"),
        pytest.param('{"line":"beginning","version":9}\n', "line 1: the recording has version 9", id="version"),
    ],
)
def test_what_is_no_recording(text: str, problem: str, tmp_path: pathlib.Path) -> None:
    result = run(tmp_path, text)
    assert result.exit_code != 0
    assert problem in str(result.exception)


def test_objects_that_cannot_be_read_are_named(recording: str, tmp_path: pathlib.Path) -> None:
    result = run(tmp_path, recording.replace('"kind":"Node"', '"kind":"Knot"', 1))
    assert "decision 1: " in str(result.exception)
    assert "Knot" in str(result.exception)


# Gangs


async def record_gangs(path: pathlib.Path) -> None:
    """A gang of two on two nodes with a device each, and one of three for which there is no room."""
    enabled = gates.ALL.switched({gates.Gate.GENERIC_WORKLOAD: True})
    async with controlplane.control_plane(schedulers=0, gates=enabled) as plane:
        plane.launch_scheduler("scheduler", record=path)
        await plane.create(
            testing.device_class(DRIVER, f'device.driver == "{DRIVER}"'),
            testing.claim_template("gpu").request("r", device_class=DRIVER, count=1, mode="ExactCount"),
            *(made for name in ("n1", "n2") for made in gpu_node(name, 1)),
        )
        for gang, size in (("small", 2), ("large", 3)):
            members = [gpu_pod(f"{gang}-{number}") for number in range(size)]
            await plane.create(*(in_gang(each, gang, size) for each in members))


def in_gang(member: pod.Pod, gang: str, size: int) -> pod.Pod:
    metadata = structs.replace(member.metadata, labels={gangs.LABEL: gang}, annotations={gangs.SIZE: str(size)})
    return structs.replace(member, metadata=metadata)


def test_gangs_are_recorded_and_replayed(tmp_path: pathlib.Path) -> None:
    asyncio.run(record_gangs(tmp_path / "gangs"))
    text = (tmp_path / "gangs").read_text(encoding="utf-8")
    made = [line for line in map(json.loads, text.splitlines()) if line["line"] == "together"]
    assert [len(each["pods"]) for each in made[:2]] == [2, 3]
    assert sorted(each["node"] for each in made[0]["members"]) == ["n1", "n2"]
    assert "cannot allocate all claims" in made[1]["reasons"]
    assert run(tmp_path, text).exit_code == 0
    result = run(tmp_path, text.replace('"devices":[{"name":"gpu-0"}]', '"devices":[]', 1), "--pod", "small-1")
    assert result.exit_code == 1
    assert "pod default/small-" in result.stdout


# Dumps


@pytest.mark.parametrize("name", ["a", "c", ""], ids=["on-a-node", "waiting", "all-that-wait"])
def test_a_dump_reproduces_a_decision(name: str, folder: pathlib.Path) -> None:
    result = CliRunner().invoke(app, ["replay", str(folder / "dump"), "--pod", name])
    assert (result.exit_code, result.stdout) == (0, "1 decision comes out as recorded\n")


def test_a_dump_in_which_something_has_changed(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    text = (folder / "dump" / "all.json").read_text(encoding="utf-8")
    document = json.loads(text)
    documents = [each for each in document["items"] if each["kind"] != "DeviceClass"]
    (tmp_path / "all.json").write_text(json.dumps({**document, "items": documents}), encoding="utf-8")
    result = CliRunner().invoke(app, ["replay", str(tmp_path)])
    assert result.exit_code == 1
    assert "pod default/c: comes out otherwise" in result.stdout
    assert f"{DRIVER} does not exist" in result.stdout


def test_a_pod_that_is_not_there(folder: pathlib.Path) -> None:
    result = CliRunner().invoke(app, ["replay", str(folder / "dump"), "--pod", "x"])
    assert "there is no pod default/x" in str(result.exception)
