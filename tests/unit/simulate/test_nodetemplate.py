"""Nodes made from another node."""

import uuid

from drachma import testing
from drachma.api import meta, resourceslice
from drachma.simulate import nodetemplate

UUID = "GPU-7b6f1c9e-2f2c-4b9a-8d55-0c1f5e2a9a11"


def a_slice(name: str, pool: str, **attributes: str) -> resourceslice.ResourceSlice:
    devices = [testing.device(f"gpu-{number}").attributes(**attributes) for number in range(2)]
    return testing.resource_slice(name, driver="d.example.com", pool=pool).on_node("box").devices(*devices).build()


def attribute(of: meta.Object, name: str, device: int = 0) -> str:
    assert isinstance(of, resourceslice.ResourceSlice)
    return str(of.spec.devices[device].attributes[name].string_value)


def test_what_names_the_node_names_the_other() -> None:
    node = testing.node("box", labels={"rack": "r1", "me": "box", nodetemplate.HOSTNAME: "box"}).build()
    made, slices = nodetemplate.rename(node, [a_slice("box-gpus", "box", host="box", model="a100-box")], "new-1")
    assert made.metadata.name == "new-1"
    assert made.metadata.labels == {"rack": "r1", "me": "new-1", nodetemplate.HOSTNAME: "new-1"}
    (published,) = slices
    assert (published.metadata.name, published.spec.node_name, published.spec.pool.name) == (
        "new-1-gpus",
        "new-1",
        "new-1",
    )
    assert (attribute(published, "host"), attribute(published, "model")) == ("new-1", "a100-box")


def test_names_without_that_of_the_node_are_made_unique() -> None:
    """A short name is not replaced within words."""
    node = testing.node("box").build()
    _, (published,) = nodetemplate.rename(node, [a_slice("boxes", "inbox")], "new-1")
    assert (published.metadata.name, published.spec.pool.name) == ("boxes-new-1", "inbox-new-1")


def test_uuids_are_drawn_anew_for_every_node() -> None:
    node = testing.node("box").build()
    given = a_slice("box-gpus", "box", uuid=UUID)
    one, two, again = (nodetemplate.rename(node, [given], name)[1][0] for name in ("n1", "n2", "n1"))
    drawn = attribute(one, "uuid")
    assert drawn.startswith("GPU-")
    assert str(uuid.UUID(drawn.removeprefix("GPU-"))) == drawn.removeprefix("GPU-")
    assert len({UUID, drawn, attribute(two, "uuid")}) == 3
    assert attribute(one, "uuid", 1) == drawn, "equal values stay equal"
    assert attribute(again, "uuid") == drawn
