"""The controller: decides for pods when to go as news come in, and deletes them when their time has come.

What decides is computed from the caches whenever something that matters changes; only the time at which a pod has to
go is kept. Before it is deleted, the server is asked whether it is still the same pod.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from msgspec import structs

from drachma.api import devices, devicetaintrule, pod, resourceclaim, resourceslice
from drachma.api import gates as features
from drachma.claims import taints
from drachma.client import patches
from drachma.controllers import podeviction
from drachma.controllers.devicetaints import eviction, rulestatus, taintstate
from drachma.runtime import Surroundings, controller, informer, workqueue

WORKERS: Final = 10
STATUS_SECONDS: Final = 10.0
"""The status of a rule is written at most so often."""

_EVICTED: Final = 500
_WORDING: Final = podeviction.Wording(
    taints="device",
    event_reason="DeviceTaintManagerEviction",
    condition_reason="DeletionByDeviceTaintManager",
    condition_message="Device Taint manager: deleting due to NoExecute taint",
)

Rule = devicetaintrule.DeviceTaintRule


class Item(NamedTuple):
    """A pod or a rule, this very one by its uid."""

    kind: Literal["pod", "rule"]
    namespace: str
    name: str
    uid: str

    @property
    def pod_id(self) -> podeviction.PodID:
        return podeviction.PodID(self.namespace, self.name, self.uid)

    def __str__(self) -> str:
        return f"{self.kind}:{self.namespace}/{self.name}"


def _pod_item(of: pod.Pod) -> Item:
    return Item("pod", of.metadata.namespace, of.metadata.name, of.metadata.uid)


def _rule_item(of: Rule) -> Item:
    return Item("rule", "", of.metadata.name, of.metadata.uid)


class DeviceTaintEviction:
    """Evicts pods from tainted devices, and tells how far it is in the status of rules."""

    name: Final = "device-taint-eviction-controller"

    def __init__(self, surroundings: Surroundings) -> None:
        informers = surroundings.informers
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._evictor: Final = podeviction.PodEvictor(surroundings, self.name, wording=_WORDING)
        self._queue: Final[workqueue.Queue[Item]] = workqueue.Queue(
            self.name, time=surroundings.clock, measured=surroundings.queues
        )
        with_rules = surroundings.gates.on(features.Gate.DEVICE_TAINT_RULES)
        self._state: Final = taintstate.TaintState(informers, with_rules=with_rules)
        self._due: Final[dict[Item, eviction.Eviction]] = {}
        self._evicted: Final[OrderedDict[str, None]] = OrderedDict()
        self._evicted_by: Final[dict[str, int]] = {}
        informers.of(resourceclaim.ResourceClaim).add_handler(
            informer.Handler(added=self._see_claim, updated=self._see_changed_claim, deleted=self._see_claim)
        )
        informers.of(pod.Pod).add_handler(
            informer.Handler(added=self._decide, updated=self._see_changed_pod, deleted=self._lose_pod)
        )
        informers.of(resourceslice.ResourceSlice).add_handler(
            informer.Handler(
                added=self._see_slice, updated=lambda _, new: self._see_slice(new), deleted=self._see_slice
            )
        )
        if with_rules:
            informers.of(Rule).add_handler(
                informer.Handler(added=self._see_rule, updated=self._see_changed_rule, deleted=self._lose_rule)
            )

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    async def _reconcile(self, item: Item) -> controller.After | None:
        return await (self._evict(item) if item.kind == "pod" else self._report(item))

    # News

    @property
    def _is_calm(self) -> bool:
        """Whether no pod has to go, and nothing is there that could drive one off."""
        return not self._due and not self._state.has_taints

    def _see_claim(self, claim: resourceclaim.ResourceClaim) -> None:
        if self._is_calm:
            return
        for user in self._state.users(claim):
            self._decide(user)

    def _see_changed_claim(self, old: resourceclaim.ResourceClaim, new: resourceclaim.ResourceClaim) -> None:
        if old.status.reserved_for == new.status.reserved_for and old.status.allocation == new.status.allocation:
            return
        if not self._is_calm:
            self._see_claim(old)
            self._see_claim(new)

    def _see_changed_pod(self, old: pod.Pod, new: pod.Pod) -> None:
        # The condition that eviction itself writes must not begin it anew.
        if (old.spec.node_name, old.status.resource_claim_statuses) != (
            new.spec.node_name,
            new.status.resource_claim_statuses,
        ):
            self._decide(new)

    def _lose_pod(self, gone: pod.Pod) -> None:
        self._due.pop(_pod_item(gone), None)

    def _see_slice(self, known: resourceslice.ResourceSlice) -> None:
        driver, pool = known.spec.driver, known.spec.pool.name
        changed = self._state.reread_pool(driver, pool)
        if changed:
            for claim in self._state.claims_with(driver, pool, changed):
                self._see_claim(claim)

    def _see_rule(self, rule: Rule) -> None:
        # The status comes before the evictions, so that people see what is about to happen.
        self._queue.add(_rule_item(rule))
        self._reconsider([rule])

    def _see_changed_rule(self, old: Rule, new: Rule) -> None:
        if old.spec != new.spec:
            self._queue.add(_rule_item(new))
            self._reconsider([old, new])

    def _lose_rule(self, gone: Rule) -> None:
        self._evicted_by.pop(gone.metadata.uid, None)
        self._reconsider([gone])

    def _reconsider(self, rules: Iterable[Rule]) -> None:
        evicting = [each for each in rules if each.spec.taint.effect == taints.NO_EXECUTE]
        if evicting:
            for claim in self._state.claims_selected(evicting):
                self._see_claim(claim)

    def _decide(self, of: pod.Pod) -> None:
        """Sets, changes or cancels the time at which a pod has to go."""
        if self._is_calm:
            return
        item, now = _pod_item(of), self._clock.utc()
        due = self._state.due(of, self._state.evicting_rules(), now=now)
        if due is None:
            if self._due.pop(item, None) is not None:
                self._evictor.tell(item.pod_id, "Cancelling deletion")
            return
        self._due[item] = due
        self._queue.add_after(item, (due.when - now).total_seconds())
        self._report_later(due)

    def _report_later(self, due: eviction.Eviction) -> None:
        for reason in due.reasons:
            if isinstance(reason, eviction.RuleReason):
                self._queue.add_after(Item("rule", "", reason.rule, reason.uid), STATUS_SECONDS)

    # Pods

    async def _evict(self, item: Item) -> controller.After | None:
        due = self._due.get(item)
        if due is None or item.uid in self._evicted:
            return None
        left = (due.when - self._clock.utc()).total_seconds()
        if left > 0:
            return controller.After(left)
        outcome = await self._evictor.delete(item.pod_id, message="Marking for deletion")
        self._due.pop(item, None)
        self._evicted[item.uid] = None
        if len(self._evicted) > _EVICTED:
            self._evicted.popitem(last=False)
        # One that was going already counts: the taint made it go, perhaps in an earlier attempt.
        if outcome is not podeviction.Outcome.WAS_GONE:
            self._evictor.count((self._clock.utc() - due.when).total_seconds())
            for uid in due.rules:
                self._evicted_by[uid] = self._evicted_by.get(uid, 0) + 1
            self._report_later(due)
        return None

    # Rules

    async def _report(self, item: Item) -> controller.After | None:
        """Writes the status of a rule, if it has changed and was not written just now."""
        rule = self._state.rule(item.name)
        if rule is None or rule.metadata.uid != item.uid:
            return None
        now = self._clock.utc()
        known = rulestatus.known(rule)
        if known is not None and known.observed_generation == rule.metadata.generation:
            written = known.last_transition_time or now
            left = STATUS_SECONDS - (now - written).total_seconds()
            if left > 0:
                return controller.After(left)
        condition = rulestatus.condition(
            rule,
            pending=self._pending(rule),
            selected=self._selected(rule),
            evicted=self._evicted_by.get(rule.metadata.uid, 0),
            now=now,
        )
        if condition is not None:
            others = [each for each in rule.status.conditions if each.type != rulestatus.CONDITION]
            await self._client.patch(
                Rule,
                rule.metadata.name,
                patch=patches.merge({"status": {"conditions": [*others, condition]}}, patches.unchanged(rule)),
                subresource="status",
            )
        return None

    def _pending(self, rule: Rule) -> rulestatus.Pending:
        """The pods that a rule makes go, or would if its effect were not None."""
        match rule.spec.taint.effect:
            case taints.NO_EXECUTE:
                rules = self._state.evicting_rules()
            case "None":
                taint = structs.replace(rule.spec.taint, effect=taints.NO_EXECUTE)
                rules = [_with_taint(rule, taint)]
            case _:
                return rulestatus.Pending(0, 0)
        namespaces, count, now = set(), 0, self._clock.utc()
        for each in self._state.pods():
            if each.metadata.deletion_timestamp is not None:
                continue
            due = self._state.due(each, rules, now=now)
            if due is not None and rule.metadata.uid in due.rules:
                count += 1
                namespaces.add(each.metadata.namespace)
        return rulestatus.Pending(count, len(namespaces))

    def _selected(self, rule: Rule) -> rulestatus.Selected:
        if rule.spec.taint.effect != "None":
            return rulestatus.Selected(0, 0)
        return rulestatus.Selected(self._state.published(rule), self._state.allocated(rule))


def _with_taint(rule: Rule, taint: devices.DeviceTaint) -> Rule:
    return structs.replace(rule, spec=structs.replace(rule.spec, taint=taint))
