"""Invariants of a cluster, checked on its history alone: no state of the components is used.

The checker is pure. It takes the entries of a history in order, and returns the violations that each one shows:

- a device is allocated to at most one claim;
- the quota that workloads hold is within that of their cluster queue and cohort;
- every acknowledged write and deletion shows in the watch, and revisions never go back;
- after a settle period without load and faults nothing is left unfinished.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import msgspec

from bench.soak import history
from drachma.values import quantity

DeviceKey = tuple[str, str, str]

UNFINISHED_KINDS = ("pods", "jobs", "workloads", "resourceclaims", "podgroups")
"""Kinds of which nothing may be left when the load has ended and cleaned up."""


class Violation(msgspec.Struct, frozen=True):
    """Broken invariant, with the object and revision that show it."""

    rule: str
    subject: str
    detail: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.subject}: {self.detail}"


class Checker:
    """State that the invariants need: holders of devices and quota, and writes that the watch has yet to show."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
        """Current objects by kind and uid."""
        self._holders: dict[DeviceKey, dict[str, int]] = defaultdict(dict)
        self._devices: dict[str, tuple[DeviceKey, ...]] = {}
        self._usage: dict[str, tuple[str, Mapping[str, Fraction]]] = {}
        self._over_quota: set[tuple[str, str]] = set()
        self._newest: dict[str, int] = {}
        self._writes: set[tuple[str, str, int]] = set()
        self._deletes: set[tuple[str, str]] = set()
        self._seen_writes: set[tuple[str, str, int]] = set()
        self._seen_deletes: set[tuple[str, str]] = set()

    def feed(self, entry: history.Entry) -> list[Violation]:
        """Take the next entry of the history; return the violations that it shows."""
        match entry:
            case history.Event():
                return self._feed_event(entry)
            case history.Write():
                self._expect(self._writes, self._seen_writes, (entry.kind, entry.uid, entry.revision))
            case history.Delete():
                self._expect(self._deletes, self._seen_deletes, (entry.kind, entry.uid))
            case history.Gap():
                self._pass_gap(entry)
        return []

    def lost_writes(self) -> list[Violation]:
        """Return the acknowledged writes that the watch has not shown, once the observer has caught up."""
        lost = [Violation("lost write", f"{kind} {uid}", f"revision {at}") for kind, uid, at in sorted(self._writes)]
        return lost + [Violation("lost delete", f"{kind} {uid}", "still there") for kind, uid in sorted(self._deletes)]

    def unfinished(self, *, ignored: Iterable[str] = ()) -> dict[str, str]:
        """Return a description of every object that should be finished and gone by now, by uid."""
        skipped = set(ignored)
        return {
            uid: _describe(kind, document)
            for kind in UNFINISHED_KINDS
            for uid, document in self.objects[kind].items()
            if uid not in skipped
        }

    def _feed_event(self, event: history.Event) -> list[Violation]:
        violations = self._check_order(event)
        current = self.objects[event.kind]
        is_gone = event.type == "DELETED"
        if is_gone:
            current.pop(event.uid, None)
        else:
            current[event.uid] = event.document
        self._observe(self._writes, self._seen_writes, (event.kind, event.uid, event.revision))
        if is_gone or event.document["metadata"].get("deletionTimestamp"):
            self._observe(self._deletes, self._seen_deletes, (event.kind, event.uid))
        match event.kind:
            case "resourceclaims":
                violations += self._check_devices(event, () if is_gone else _allocated_devices(event.document))
            case "workloads":
                violations += self._check_quota(event, {} if is_gone else _reserved_quota(event.document))
            case "clusterqueues":
                violations += self._check_all_quota(event.revision)
        return violations

    def _check_order(self, event: history.Event) -> list[Violation]:
        newest = self._newest.get(event.kind, 0)
        if event.type == "LISTED":
            return []
        self._newest[event.kind] = max(newest, event.revision)
        if event.revision > newest:
            return []
        return [Violation("revision went back", f"{event.kind} {event.uid}", f"{event.revision} after {newest}")]

    def _check_devices(self, event: history.Event, devices: tuple[DeviceKey, ...]) -> list[Violation]:
        for device in self._devices.pop(event.uid, ()):
            self._holders[device].pop(event.uid, None)
        violations = []
        for device in devices:
            holders = self._holders[device]
            if holders:
                detail = f"claims {sorted(holders)} and {event.uid} at revision {event.revision}"
                violations.append(Violation("device allocated twice", "/".join(device), detail))
            holders[event.uid] = event.revision
        if devices:
            self._devices[event.uid] = devices
        return violations

    def _check_quota(self, event: history.Event, usage: Mapping[str, Fraction]) -> list[Violation]:
        self._usage.pop(event.uid, None)
        if usage:
            self._usage[event.uid] = (event.document["status"]["admission"]["clusterQueue"], usage)
        return self._check_all_quota(event.revision)

    def _check_all_quota(self, revision: int) -> list[Violation]:
        used: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
        for queue, usage in self._usage.values():
            for resource, amount in usage.items():
                used[queue, resource] += amount
        limits, cohorts = _quota_limits(self.objects["clusterqueues"].values())
        group_used: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
        group_limits: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
        for (queue, resource), (nominal, _) in limits.items():
            group = f"cohort {cohorts[queue]}" if cohorts[queue] else f"cluster queue {queue}"
            group_limits[group, resource] += nominal
            group_used[group, resource] += used.get((queue, resource), Fraction())
        over = {key: (group_used[key], limit) for key, limit in group_limits.items() if group_used[key] > limit}
        for (queue, resource), (_, most) in limits.items():
            amount = used.get((queue, resource), Fraction())
            if most is not None and amount > most:
                over[f"cluster queue {queue}", resource] = (amount, most)
        # One violation for each time that a limit is passed, not for every event until it holds again.
        fresh = [
            Violation("quota exceeded", subject, f"{resource}: {amount} of {limit} at revision {revision}")
            for (subject, resource), (amount, limit) in sorted(over.items())
            if (subject, resource) not in self._over_quota
        ]
        self._over_quota = set(over)
        return fresh

    def _pass_gap(self, gap: history.Gap) -> None:
        """Forget a kind before it is listed again; writes up to the gap's revision can no longer be checked one by one.

        What a list does not show was deleted meanwhile, so deletions count as seen.
        """
        for uid in list(self.objects[gap.kind]):
            self._devices.pop(uid, None)
            self._usage.pop(uid, None)
            for holders in self._holders.values():
                holders.pop(uid, None)
        self.objects[gap.kind].clear()
        self._writes = {each for each in self._writes if each[0] != gap.kind or each[2] > gap.revision}
        self._deletes = {each for each in self._deletes if each[0] != gap.kind}
        self._newest[gap.kind] = gap.revision

    @staticmethod
    def _expect(waiting: set[Any], seen: set[Any], key: Any) -> None:
        """Wait for a key, unless the watch was faster than the answer."""
        if key in seen:
            seen.discard(key)
        else:
            waiting.add(key)

    @staticmethod
    def _observe(waiting: set[Any], seen: set[Any], key: Any) -> None:
        if key in waiting:
            waiting.discard(key)
        else:
            seen.add(key)


def check_history(entries: Iterable[history.Entry]) -> list[Violation]:
    """Return all violations in a whole history, lost writes included."""
    checker = Checker()
    violations = [violation for entry in entries for violation in checker.feed(entry)]
    return violations + checker.lost_writes()


def _allocated_devices(claim: Mapping[str, Any]) -> tuple[DeviceKey, ...]:
    """Devices that a claim holds for itself: neither by administrative access nor as a share."""
    allocation = claim.get("status", {}).get("allocation") or {}
    return tuple(
        (result["driver"], result["pool"], result["device"])
        for result in allocation.get("devices", {}).get("results", ())
        if not result.get("adminAccess") and not result.get("shareID")
    )


def _reserved_quota(workload: Mapping[str, Any]) -> dict[str, Fraction]:
    """Quota that a workload holds by resource, without the part of pods that have finished."""
    status = workload.get("status", {})
    if not _has_condition(status, "QuotaReserved") or _has_condition(status, "Finished"):
        return {}
    finished = {each["name"]: each["count"] for each in status.get("reclaimablePods", ())}
    usage: dict[str, Fraction] = defaultdict(Fraction)
    for assignment in status.get("admission", {}).get("podSetAssignments", ()):
        count = assignment.get("count", 1)
        share = Fraction(count - min(count, finished.get(assignment["name"], 0)), count) if count else Fraction()
        for resource, amount in assignment.get("resourceUsage", {}).items():
            usage[resource] += _amount(amount) * share
    return usage


def _quota_limits(
    queues: Iterable[Mapping[str, Any]],
) -> tuple[dict[tuple[str, str], tuple[Fraction, Fraction | None]], dict[str, str]]:
    """Return nominal quota and the most with borrowing by queue and resource, and the cohort of each queue."""
    limits: dict[tuple[str, str], tuple[Fraction, Fraction | None]] = {}
    cohorts = {}
    for queue in queues:
        name = queue["metadata"]["name"]
        cohorts[name] = queue["spec"].get("cohortName", "")
        for group in queue["spec"].get("resourceGroups", ()):
            for flavor in group["flavors"]:
                for entry in flavor["resources"]:
                    nominal = _amount(entry["nominalQuota"])
                    limit = entry.get("borrowingLimit")
                    most = None if limit is None else nominal + _amount(limit)
                    before, before_most = limits.get((name, entry["name"]), (Fraction(), Fraction()))
                    together = None if most is None or before_most is None else before_most + most
                    limits[name, entry["name"]] = (before + nominal, together)
    return limits, cohorts


def _amount(text: str) -> Fraction:
    return Fraction(quantity.Quantity.parse(str(text)).nanos, 10**9)


def _has_condition(status: Mapping[str, Any], kind: str) -> bool:
    return any(each["type"] == kind and each["status"] == "True" for each in status.get("conditions", ()))


def _describe(kind: str, document: Mapping[str, Any]) -> str:
    metadata, status = document["metadata"], document.get("status", {})
    facts = [f"{kind} {metadata.get('namespace', '')}/{metadata['name']}"]
    if status.get("phase"):
        facts.append(status["phase"])
    if metadata.get("deletionTimestamp"):
        facts.append(f"deletion asked for at {metadata['deletionTimestamp']}")
    if metadata.get("finalizers"):
        facts.append(f"finalizers {metadata['finalizers']}")
    node = document.get("spec", {}).get("nodeName")
    if node:
        facts.append(f"on {node}")
    unmet = [f"{each['type']}={each['status']} {each.get('message', '')}" for each in status.get("conditions", ())]
    return ", ".join([*facts, *unmet])
