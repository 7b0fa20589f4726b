"""ImageLocality: nodes that have a pod's images already are preferred, large images more, and those of many nodes most.

An image counts by its size times the share of nodes that have it, so that not all pods come to the one node that has.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Final

from drachma.api import pod
from drachma.scheduler.framework import cyclestate, scoring
from drachma.scheduler.framework.plugin import Scores
from drachma.scheduler.snapshot import nodeinfo

_MIB: Final = 1024 * 1024
_LEAST: Final = 23 * _MIB
_MOST: Final = 1000 * _MIB
"""Of each image."""


class ImageLocality:
    """The plugin."""

    name: Final = "ImageLocality"

    def score(self, cycle: cyclestate.CycleState, passing: int) -> Scores:
        """The more of its images, by size and spread, a node has, the better."""
        nodes = cycle.snapshot.nodes
        if not nodes.with_images & passing:
            return {}
        images = list(_images(cycle.pod.pod))
        classes = [(0, passing)]
        for image in images:
            sizes = nodes.properties.classes(("image", image), functools.partial(_size, image), among=nodes.everyone)
            share = (nodes.everyone & ~sizes.get(0, 0)).bit_count() / len(nodes)
            if share:
                worth: dict[int, int] = {}
                for size, members in sizes.items():
                    amount = int(size * share)
                    worth[amount] = worth.get(amount, 0) | members
                classes = scoring.merged(scoring.split(classes, worth))
        most = _MOST * len(images)
        scores: dict[int, int] = {}
        for total, same in classes:
            score = scoring.MAX * (min(max(total, _LEAST), most) - _LEAST) // (most - _LEAST)
            scores[score] = scores.get(score, 0) | same
        return scores


def _images(of: pod.Pod) -> Iterator[str]:
    for container in (*of.spec.init_containers, *of.spec.containers):
        yield _with_tag(container.image)
    for volume in of.spec.volumes:
        if volume.image is not None:
            yield _with_tag(volume.image.reference)


def _with_tag(image: str) -> str:
    """An image's name as nodes say it."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


def _size(image: str, info: nodeinfo.NodeInfo) -> int:
    """How large an image on a node is; 0 where it is not there."""
    return next((each.size_bytes for each in info.node.status.images if image in each.names), 0)
