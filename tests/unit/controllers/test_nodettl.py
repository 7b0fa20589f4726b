"""How long kubelets may rely on what they know, by the size of the cluster."""

import pytest

from drachma.api import meta, node
from drachma.controllers import nodettl
from tests.unit.controllers import worlds


@pytest.mark.parametrize(
    ("current", "size", "want"),
    [
        pytest.param(0, 0, 0, id="nobody"),
        pytest.param(0, 100, 0, id="up-to-a-hundred"),
        pytest.param(0, 101, 1, id="more"),
        pytest.param(1, 90, 1, id="still-more-than-enough"),
        pytest.param(1, 89, 0, id="fewer"),
        pytest.param(0, 5000, 4, id="many-at-once"),
        pytest.param(4, 10, 0, id="few-at-once"),
        pytest.param(2, 2001, 4, id="two-steps"),
    ],
)
def test_steps(current: int, size: int, want: int) -> None:
    assert nodettl.step(current, size) == want


async def test_nodes_are_annotated() -> None:
    async with worlds.world(nodettl.NodeTimeToLive) as world:
        await world.client.create(node.Node(metadata=meta.ObjectMeta(name="n")))
        await world.settle()
        stored_node = await world.client.get(node.Node, "n")
        assert stored_node.metadata.annotations == {nodettl.ANNOTATION: "0"}
