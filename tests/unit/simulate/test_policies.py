"""Device policies: choice among suitable nodes and devices."""

import pathlib

from drachma import allocator, testing
from drachma.scheduler import Settings
from drachma.simulate import ClusterState, Simulation
from tests.unit.simulate import objects, placements

DOCUMENT = pathlib.Path(__file__).resolve().parents[3] / "docs" / "policies.md"


def test_what_policies_come_to_is_what_the_document_says() -> None:
    document = "".join(line.removeprefix("    ") for line in DOCUMENT.read_text("utf-8").splitlines(keepends=True))
    assert placements.table() in document


def test_what_a_pod_likes_best_comes_before_what_a_policy_does() -> None:
    """Small GPUs of one node are partly used, which packing prefers; the pod prefers a large one of another node."""
    driver = objects.DRIVER
    small, large = (f'device.attributes["{driver}"].model == "{model}"' for model in ("small", "large"))
    template = testing.claim_template("either").first_available(
        "gpu",
        testing.subrequest("large", device_class=driver, mode="ExactCount", count=1, select=large),
        testing.subrequest("small", device_class=driver, mode="ExactCount", count=1, select=small),
    )
    machines = [
        made.build()
        for name, model in (("busy", "small"), ("idle", "large"))
        for made in (
            testing.node(name, allocatable=objects.CPU),
            testing.resource_slice(name, driver=driver)
            .on_node(name)
            .devices(*(testing.device(f"gpu-{number}").attributes(model=model) for number in range(2))),
        )
    ]
    taken = testing.claim("c").uid("c").request("r", device_class=driver).allocated(("r", driver, "busy", "gpu-0"))
    state = ClusterState.of([objects.CLASS, template.build(), *machines, taken.build(), objects.gpu_pod("p", "either")])
    cluster = Simulation(state, settings=Settings(policy=allocator.Policy.PACK))
    (placement,) = cluster.schedule().placements
    assert placement.node == "idle"
