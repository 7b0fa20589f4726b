"""Both user stories of KEP-4816: a workload that takes the best devices there are, wherever it is deployed."""

import pytest

from drachma.api import pod
from drachma.testing import claim, device, device_class, node, resource_slice, subrequest
from drachma.testing import pod as build_pod
from drachma.testing.claims import ClaimBuilder
from drachma.testing.policy import SliceBuilder
from tests.scenarios import controlplane

DRIVER = "gpu.example.com"
CONTAINER = pod.Container(name="main", image="registry.example/app:1")


def of_model(model: str) -> str:
    return f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].model == "{model}"'


def gpus(on: str, **counts: int) -> SliceBuilder:
    """The GPUs of a node by model."""
    devices = [device(f"{model}-{i}").attributes(model=model) for model, count in counts.items() for i in range(count)]
    return resource_slice(on, driver=DRIVER).on_node(on).devices(*devices)


def picky(name: str = "c") -> ClaimBuilder:
    """The latest model; or one a generation older; or two that are older still."""
    return claim(name).first_available(
        "gpu",
        subrequest("latest", "gpu", select=of_model("new")),
        subrequest("previous", "gpu", select=of_model("mid")),
        subrequest("old-pair", "gpu", select=of_model("old"), count=2),
    )


def user(name: str, of: str) -> object:
    return build_pod(name).spec(containers=(CONTAINER,)).claim("gpu", claim=of)


async def results(plane: controlplane.ControlPlane, name: str) -> list[str]:
    allocation = (await plane.claim(name)).status.allocation
    assert allocation is not None, name
    return [f"{each.request}: {each.pool}/{each.device}" for each in allocation.devices.results]


@pytest.mark.parametrize(
    ("there_is", "wanted"),
    [
        pytest.param({"new": 1, "mid": 1, "old": 2}, ["gpu/latest: n/new-0"], id="latest-model"),
        pytest.param({"mid": 1, "old": 2}, ["gpu/previous: n/mid-0"], id="one-generation-older"),
        pytest.param({"old": 3}, ["gpu/old-pair: n/old-0", "gpu/old-pair: n/old-1"], id="two-of-an-even-older-model"),
    ],
)
async def test_story_1_models_and_numbers(there_is: dict[str, int], wanted: list[str]) -> None:
    async with controlplane.control_plane() as plane:
        await plane.create(node("n"), device_class("gpu"), gpus("n", **there_is), picky(), user("p", "c"))
        assert await plane.node_of("p") == "n"
        assert await results(plane, "c") == wanted


async def test_story_1_nothing_that_would_do() -> None:
    async with controlplane.control_plane() as plane:
        await plane.create(node("n"), device_class("gpu"), gpus("n", old=1), picky(), user("p", "c"))
        assert await plane.node_of("p") == ""
        assert "1 cannot allocate all claims" in await plane.why("p")


async def test_story_1_the_best_that_is_left() -> None:
    """Of four such workloads the first gets the latest model, and the last gets nothing until something is free."""
    async with controlplane.control_plane() as plane:
        await plane.create(node("n"), device_class("gpu"), gpus("n", new=1, mid=1, old=2))
        for number in range(4):
            await plane.create(picky(f"c{number}"), user(f"p{number}", f"c{number}"))
        assert await results(plane, "c0") == ["gpu/latest: n/new-0"]
        assert await results(plane, "c1") == ["gpu/previous: n/mid-0"]
        assert await results(plane, "c2") == ["gpu/old-pair: n/old-0", "gpu/old-pair: n/old-1"]
        assert await plane.node_of("p3") == ""
        await plane.delete(pod.Pod, "p1")
        await plane.advance(30)
        assert await results(plane, "c3") == ["gpu/previous: n/mid-0"]


CLUSTERS = [
    pytest.param({"n1": {"old": 2}, "n2": {"new": 1}}, "n2", "gpu/latest", id="the-best-is-on-another-node"),
    pytest.param({"n1": {"old": 2}, "n2": {"mid": 2}}, "n2", "gpu/previous", id="a-cluster-without-the-best"),
    pytest.param({"n1": {"old": 2}, "n2": {}}, "n1", "gpu/old-pair", id="a-cluster-with-old-models-only"),
    pytest.param({"n1": {"mid": 1, "old": 9}, "n2": {"old": 9}}, "n1", "gpu/previous", id="many-old-ones-do-not-win"),
]


@pytest.mark.parametrize(("there_is", "on", "alternative"), CLUSTERS)
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_story_2_one_manifest_for_all_clusters(
    there_is: dict[str, dict[str, int]], on: str, alternative: str, seed: int
) -> None:
    """The same claim in clusters with different devices takes the node with the best of them, in the author's order."""
    async with controlplane.control_plane(seed=seed) as plane:
        await plane.create(device_class("gpu"), *(node(name) for name in there_is))
        await plane.create(*(gpus(name, **counts) for name, counts in there_is.items() if counts))
        await plane.create(picky(), user("p", "c"))
        assert await plane.node_of("p") == on
        assert {each.partition(":")[0] for each in await results(plane, "c")} == {alternative}
