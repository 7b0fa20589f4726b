"""The controller: decides on changes when pods must leave their devices, and evicts them at that time.

The decision is computed from the caches whenever a relevant object changes; only the time of a pod's eviction is kept.
Before a pod is deleted, the server is asked whether it is still the same pod.
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
"""Shortest interval between updates of the status of a rule."""

_EVICTED: Final = 500
_WORDING: Final = podeviction.Wording(
    taints="device",
    event_reason="DeviceTaintManagerEviction",
    condition_reason="DeletionByDeviceTaintManager",
    condition_message="Device Taint manager: deleting due to NoExecute taint",
)

Rule = devicetaintrule.DeviceTaintRule


class Item(NamedTuple):
    """A pod or a rule, identified by its uid."""

    kind: Literal["pod", "rule"]
    namespace: str
    name: str
    uid: str

    @property
    def pod_id(self) -> podeviction.PodID:
        return podeviction.PodID(self.namespace, self.name, self.uid)

    def __str__(self) -> str:
        return f"{self.kind}:{self.namespace}/{self.name}"


def _pod_item(pod: pod.Pod) -> Item:
    return Item("pod", pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)


def _rule_item(rule: Rule) -> Item:
    return Item("rule", "", rule.metadata.name, rule.metadata.uid)


class DeviceTaintEviction:
    """Evicts pods from tainted devices, and reports progress in the status of rules."""

    name: Final = "device-taint-eviction-controller"

    def __init__(self, surroundings: Surroundings) -> None:
        informers = surroundings.informers
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._evictor: Final = podeviction.PodEvictor(surroundings, self.name, wording=_WORDING)
        self._queue: Final[workqueue.Queue[Item]] = workqueue.Queue(
            self.name, clock=surroundings.clock, metrics=surroundings.queues
        )
        with_rules = surroundings.gates.on(features.Gate.DEVICE_TAINT_RULES)
        self._state: Final = taintstate.TaintState(informers, with_rules=with_rules)
        self._evictions: Final[dict[Item, eviction.Eviction]] = {}
        self._evicted: Final[OrderedDict[str, None]] = OrderedDict()
        self._evicted_by: Final[dict[str, int]] = {}
        informers.of(resourceclaim.ResourceClaim).add_handler(
            informer.Handler(added=self._handle_claim, updated=self._handle_claim_update, deleted=self._handle_claim)
        )
        informers.of(pod.Pod).add_handler(
            informer.Handler(added=self._decide, updated=self._handle_pod_update, deleted=self._handle_pod_deletion)
        )
        informers.of(resourceslice.ResourceSlice).add_handler(informer.Handler.on_change(self._handle_slice))
        if with_rules:
            informers.of(Rule).add_handler(
                informer.Handler(
                    added=self._handle_rule, updated=self._handle_rule_update, deleted=self._handle_rule_deletion
                )
            )

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    async def _reconcile(self, item: Item) -> controller.After | None:
        return await (self._evict(item) if item.kind == "pod" else self._report(item))

    # Handlers

    @property
    def _is_calm(self) -> bool:
        """True if no pod is to be evicted, and no taint could cause an eviction."""
        return not self._evictions and not self._state.has_taints

    def _handle_claim(self, claim: resourceclaim.ResourceClaim) -> None:
        if self._is_calm:
            return
        for user in self._state.users(claim):
            self._decide(user)

    def _handle_claim_update(self, old: resourceclaim.ResourceClaim, new: resourceclaim.ResourceClaim) -> None:
        if old.status.reserved_for == new.status.reserved_for and old.status.allocation == new.status.allocation:
            return
        if not self._is_calm:
            self._handle_claim(old)
            self._handle_claim(new)

    def _handle_pod_update(self, old: pod.Pod, new: pod.Pod) -> None:
        # The condition that an eviction writes must not start it again.
        if (old.spec.node_name, old.status.resource_claim_statuses) != (
            new.spec.node_name,
            new.status.resource_claim_statuses,
        ):
            self._decide(new)

    def _handle_pod_deletion(self, pod: pod.Pod) -> None:
        self._evictions.pop(_pod_item(pod), None)

    def _handle_slice(self, resource_slice: resourceslice.ResourceSlice) -> None:
        driver, pool = resource_slice.spec.driver, resource_slice.spec.pool.name
        changed = self._state.reread_pool(driver, pool)
        if changed:
            for claim in self._state.claims_with(driver, pool, changed):
                self._handle_claim(claim)

    def _handle_rule(self, rule: Rule) -> None:
        # The status is written before the evictions, so that users see what is about to happen.
        self._queue.add(_rule_item(rule))
        self._reconsider([rule])

    def _handle_rule_update(self, old: Rule, new: Rule) -> None:
        if old.spec != new.spec:
            self._queue.add(_rule_item(new))
            self._reconsider([old, new])

    def _handle_rule_deletion(self, rule: Rule) -> None:
        self._evicted_by.pop(rule.metadata.uid, None)
        self._reconsider([rule])

    def _reconsider(self, rules: Iterable[Rule]) -> None:
        evicting_rules = [each for each in rules if each.spec.taint.effect == taints.NO_EXECUTE]
        if evicting_rules:
            for claim in self._state.claims_selected(evicting_rules):
                self._handle_claim(claim)

    def _decide(self, pod: pod.Pod) -> None:
        """Set, change or cancel the eviction time of a pod."""
        if self._is_calm:
            return
        item, now = _pod_item(pod), self._clock.utc()
        pod_eviction = self._state.due(pod, self._state.evicting_rules(), now=now)
        if pod_eviction is None:
            if self._evictions.pop(item, None) is not None:
                self._evictor.tell(item.pod_id, "Cancelling deletion")
            return
        self._evictions[item] = pod_eviction
        self._queue.add_after(item, (pod_eviction.when - now).total_seconds())
        self._report_later(pod_eviction)

    def _report_later(self, pod_eviction: eviction.Eviction) -> None:
        for reason in pod_eviction.reasons:
            if isinstance(reason, eviction.RuleReason):
                self._queue.add_after(Item("rule", "", reason.rule, reason.uid), STATUS_SECONDS)

    # Pods

    async def _evict(self, item: Item) -> controller.After | None:
        pod_eviction = self._evictions.get(item)
        if pod_eviction is None or item.uid in self._evicted:
            return None
        seconds = (pod_eviction.when - self._clock.utc()).total_seconds()
        if seconds > 0:
            return controller.After(seconds)
        outcome = await self._evictor.delete(item.pod_id, message="Marking for deletion")
        self._evictions.pop(item, None)
        self._evicted[item.uid] = None
        if len(self._evicted) > _EVICTED:
            self._evicted.popitem(last=False)
        # A pod that was being deleted counts: the taint caused it, perhaps in an earlier attempt.
        if outcome is not podeviction.EvictionResult.WAS_GONE:
            self._evictor.count((self._clock.utc() - pod_eviction.when).total_seconds())
            for uid in pod_eviction.rules:
                self._evicted_by[uid] = self._evicted_by.get(uid, 0) + 1
            self._report_later(pod_eviction)
        return None

    # Rules

    async def _report(self, item: Item) -> controller.After | None:
        """Write the status of a rule, if it has changed and was not written just now."""
        rule = self._state.rule(item.name)
        if rule is None or rule.metadata.uid != item.uid:
            return None
        now = self._clock.utc()
        current = rulestatus.current_condition(rule)
        if current is not None and current.observed_generation == rule.metadata.generation:
            last_write = current.last_transition_time or now
            seconds = STATUS_SECONDS - (now - last_write).total_seconds()
            if seconds > 0:
                return controller.After(seconds)
        condition = rulestatus.condition(
            rule,
            affected_pods=self._pending(rule),
            selected=self._selected(rule),
            evicted=self._evicted_by.get(rule.metadata.uid, 0),
            now=now,
        )
        if condition is not None:
            other_conditions = [each for each in rule.status.conditions if each.type != rulestatus.CONDITION]
            await self._client.patch(
                Rule,
                rule.metadata.name,
                patch=patches.merge(
                    {"status": {"conditions": [*other_conditions, condition]}}, patches.unchanged(rule)
                ),
                subresource="status",
            )
        return None

    def _pending(self, rule: Rule) -> rulestatus.Pending:
        """Return the pods that a rule evicts, or would evict if its effect were not None."""
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
            pod_eviction = self._state.due(each, rules, now=now)
            if pod_eviction is not None and rule.metadata.uid in pod_eviction.rules:
                count += 1
                namespaces.add(each.metadata.namespace)
        return rulestatus.Pending(count, len(namespaces))

    def _selected(self, rule: Rule) -> rulestatus.Selected:
        if rule.spec.taint.effect != "None":
            return rulestatus.Selected(0, 0)
        return rulestatus.Selected(self._state.published(rule), self._state.allocated(rule))


def _with_taint(rule: Rule, taint: devices.DeviceTaint) -> Rule:
    return structs.replace(rule, spec=structs.replace(rule.spec, taint=taint))
