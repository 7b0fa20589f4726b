"""Scores of nodes by images."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from drachma.api import node as nodes
from drachma.scheduler.framework import cyclestate
from drachma.scheduler.plugins.imagelocality import ImageLocality
from drachma.scheduler.snapshot import podinfo
from drachma.testing import node
from drachma.testing import pod as a_pod
from tests.unit.scheduler import worlds

MIB = 1024 * 1024


def a_node(name: str, **sizes: int) -> nodes.Node:
    images = tuple(nodes.ContainerImage(names=(f"{image}:latest",), size_bytes=size) for image, size in sizes.items())
    made: nodes.Node = node(name).build()
    return structs.replace(made, status=structs.replace(made.status, images=images))


def scores(cluster: list[nodes.Node], *images: str) -> dict[str, int]:
    world = worlds.World()
    for each in cluster:
        world.snapshot.add_node(each)
    made: Any = a_pod("p")
    for number in range(len(images)):
        made = made.container(f"c{number}")
    waiting = made.build()
    containers = tuple(
        structs.replace(each, image=image) for each, image in zip(waiting.spec.containers, images, strict=True)
    )
    waiting = structs.replace(waiting, spec=structs.replace(waiting.spec, containers=containers))
    cycle = cyclestate.CycleState(podinfo.PodInfo(waiting), world.snapshot)
    found = ImageLocality().score(cycle, world.snapshot.nodes.all_nodes)
    return {info.name: score for score, members in found.items() for info in world.snapshot.nodes if info.bit & members}


@pytest.mark.parametrize(
    ("cluster", "images", "want"),
    [
        pytest.param([a_node("a"), a_node("b")], ("x",), {}, id="nobody-has-images"),
        # 250 MiB on one of two nodes count as 125: 100 * (125 - 23) / (1000 - 23).
        pytest.param([a_node("a", x=250 * MIB), a_node("b")], ("x",), {"a": 10, "b": 0}, id="one-node-has-it"),
        pytest.param(
            [a_node("a", x=250 * MIB), a_node("b", x=250 * MIB), a_node("c")],
            ("x:latest",),
            {"a": 14, "b": 14, "c": 0},
            id="two-nodes-have-it",
        ),
        # 100 * ((1000 + 500) / 2 - 23) / (2000 - 23), and so on.
        pytest.param(
            [a_node("a", x=1000 * MIB, y=500 * MIB), a_node("b", z=9000 * MIB)],
            ("x", "y"),
            {"a": 36, "b": 0},
            id="several-images",
        ),
        pytest.param([a_node("a", x=90_000 * MIB), a_node("b")], ("x",), {"a": 100, "b": 0}, id="at-most-a-hundred"),
        pytest.param([a_node("a", x=20 * MIB), a_node("b")], ("x",), {"a": 0, "b": 0}, id="too-small-to-count"),
        pytest.param([a_node("a", x=900 * MIB), a_node("b")], ("x:v2",), {"a": 0, "b": 0}, id="another-tag"),
    ],
)
def test_scores(cluster: list[nodes.Node], images: tuple[str, ...], want: dict[str, int]) -> None:
    assert scores(cluster, *images) == want
