"""Diagnoses: the reasons why a pod fits nowhere, as data and in kube-scheduler's words."""

from __future__ import annotations

from typing import Final, NamedTuple

from drachma.scheduler.framework import verdict

NO_NODES: Final = "no nodes available to schedule pods"


class Diagnosis(NamedTuple):
    """Reasons why a pod fits nowhere."""

    node_count: int
    before: verdict.Rejection | None = None
    """Rejection in PreFilter, before any node was filtered."""
    rejections: tuple[tuple[verdict.Rejection, int], ...] = ()
    """Each rejection with its set of nodes."""
    absent: tuple[verdict.Rejection, int] | None = None
    """Rejection of the nodes that PreFilter ruled out, and their number."""

    @property
    def plugins(self) -> frozenset[str]:
        """Plugins that rejected the pod. If there are none, the pod is simply tried again."""
        names = {rejection.plugin for rejection, _ in self.rejections}
        if self.before is not None:
            names.add(self.before.plugin)
        if self.absent is not None:
            names.add(self.absent[0].plugin)
        return frozenset(names)

    @property
    def resolvable(self) -> int:
        """Nodes on which evictions could help."""
        nodes = 0
        for rejection, rejected in self.rejections:
            if rejection.is_resolvable:
                nodes |= rejected
        return nodes

    def message(self, after: str = "") -> str:
        """Return the message for users. ``after`` describes what was tried to help."""
        if not self.node_count:
            return NO_NODES
        text = f"0/{self.node_count} nodes are available:"
        if self.before is not None:
            text += f" {', '.join(self.before.reasons)}."
        else:
            histogram = sorted(f"{count} {reason}" for reason, count in self._counts().items())
            if histogram:
                text += f" {', '.join(histogram)}."
        return f"{text} {after}" if after else text

    def _counts(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for rejection, nodes in self.rejections:
            for reason in rejection.reasons:
                counts[reason] = counts.get(reason, 0) + nodes.bit_count()
        if self.absent is not None:
            rejection, number = self.absent
            for reason in rejection.reasons:
                counts[reason] = counts.get(reason, 0) + number
        return counts
