"""ImageLocality: prefers nodes that have a pod's images.

An image counts by its size times the share of nodes that have it, so that not all pods go to the only node with it.
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
"""Size above which an image counts no more."""


class ImageLocality:
    """The plugin."""

    name: Final = "ImageLocality"

    def score(self, cycle: cyclestate.CycleState, passing: int) -> Scores:
        """Score nodes by their images of the pod, weighted by size and spread."""
        nodes = cycle.snapshot.nodes
        if not nodes.with_images & passing:
            return {}
        images = list(_images(cycle.pod.pod))
        classes = [(0, passing)]
        for image in images:
            sizes = nodes.properties.classes(("image", image), functools.partial(_size, image), among=nodes.all_nodes)
            share = (nodes.all_nodes & ~sizes.get(0, 0)).bit_count() / len(nodes)
            if share:
                worth: dict[int, int] = {}
                for size, members in sizes.items():
                    amount = int(size * share)
                    worth[amount] = worth.get(amount, 0) | members
                classes = scoring.merge(scoring.split(classes, worth))
        most = _MOST * len(images)
        scores: dict[int, int] = {}
        for total, same in classes:
            score = scoring.MAX * (min(max(total, _LEAST), most) - _LEAST) // (most - _LEAST)
            scores[score] = scores.get(score, 0) | same
        return scores


def _images(waiting_pod: pod.Pod) -> Iterator[str]:
    for container in (*waiting_pod.spec.init_containers, *waiting_pod.spec.containers):
        yield _add_default_tag(container.image)
    for volume in waiting_pod.spec.volumes:
        if volume.image is not None:
            yield _add_default_tag(volume.image.reference)


def _add_default_tag(image: str) -> str:
    """Return an image's name with a tag, as nodes report it."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


def _size(image: str, info: nodeinfo.NodeInfo) -> int:
    """Return the size of an image on a node, or 0."""
    return next((each.size_bytes for each in info.node.status.images if image in each.names), 0)
