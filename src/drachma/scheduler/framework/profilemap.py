"""Profile map: a scheduler with several profiles, each for the pods of one ``schedulerName``.

All profiles share the snapshot and the queue, as in kube-scheduler. A profile map is a profile itself: every question
goes to the profile of the pod that it is about, so that decisions, previews and replays need not know of profiles.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Final

from drachma.accounting import ledger
from drachma.api import pod
from drachma.claims import podstate
from drachma.scheduler.framework import bindingwork, cyclestate, diagnosis, handle, hints, plugin, verdict
from drachma.scheduler.framework.profile import Preselection, Profile
from drachma.scheduler.snapshot import Snapshot, assignment


class ProfileMap(Profile):
    """Profiles by the names of schedulers. Pods of other schedulers must not be asked about."""

    def __init__(self, profiles: Mapping[str, Profile]) -> None:
        super().__init__(next(iter(profiles.values())).entries)
        self._profiles: Final = dict(profiles)

    def of(self, waiting_pod: pod.Pod) -> Profile:
        """Return the profile of a pod."""
        return self._profiles[podstate.scheduler_name(waiting_pod)]

    def __str__(self) -> str:
        """Return the plugins of each profile as a table."""
        return "\n\n".join(f"Profile {name}\n{profile}" for name, profile in self._profiles.items())

    def pre_enqueue(self, waiting_pod: pod.Pod, snapshot: Snapshot) -> verdict.Rejection | None:
        """Return the first rejection of a pod before it becomes active, or None."""
        return self.of(waiting_pod).pre_enqueue(waiting_pod, snapshot)

    def hints(self, snapshot: Snapshot) -> dict[str, Sequence[hints.Hint]]:
        """Return the changes that can help pods rejected by each plugin of any profile."""
        # The hints of a plugin do not depend on its arguments, so those of one profile are good for all.
        return {
            name: offered for profile in self._profiles.values() for name, offered in profile.hints(snapshot).items()
        }

    def pre_filter(self, cycle: cyclestate.CycleState) -> Preselection | verdict.Rejection:
        """Return the nodes to filter, or a rejection if no node is feasible."""
        return self.of(cycle.pod.pod).pre_filter(cycle)

    def filter(self, cycle: cyclestate.CycleState, alive: int) -> plugin.Filtered:
        """Return the nodes that pass all filters, and the first rejection of each other node."""
        return self.of(cycle.pod.pod).filter(cycle, alive)

    def filter_with_nominated_pods(self, cycle: cyclestate.CycleState, alive: int) -> plugin.Filtered:
        """Filter nodes that must also have room for more important pods nominated for them."""
        return self.of(cycle.pod.pod).filter_with_nominated_pods(cycle, alive)

    def local_question(self, cycle: cyclestate.CycleState) -> Hashable | None:
        """Return a key of what the filters ask each node, or None if they read more than the node."""
        return self.of(cycle.pod.pod).local_question(cycle)

    def post_filter(self, cycle: cyclestate.CycleState, unfit: diagnosis.Diagnosis) -> plugin.PostFilterResult:
        """Return what may help a pod that fits nowhere."""
        return self.of(cycle.pod.pod).post_filter(cycle, unfit)

    def best(self, cycle: cyclestate.CycleState, passing: int) -> int:
        """Return the feasible nodes with the highest total score."""
        return self.of(cycle.pod.pod).best(cycle, passing)

    def reserve(self, cycle: cyclestate.CycleState, node: str) -> assignment.Assignment:
        """Return the assignment of a pod to a node, with the additions of all plugins."""
        return self.of(cycle.pod.pod).reserve(cycle, node)

    def still_fits(self, planned: assignment.Assignment, account: ledger.Ledger) -> bool:
        """Return True if no plugin objects to a pod on its node, where other schedulers placed pods meanwhile."""
        return self.of(planned.pod).still_fits(planned, account)

    def pre_bind(
        self, cycle: cyclestate.CycleState, planned: assignment.Assignment, *, handle: handle.Handle
    ) -> list[tuple[str, bindingwork.BindingWork]]:
        """Return the work before a pod is bound, each with the name of its plugin."""
        return self.of(cycle.pod.pod).pre_bind(cycle, planned, handle=handle)
