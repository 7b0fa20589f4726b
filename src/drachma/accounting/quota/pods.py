"""Pods: counted, with their compute resources until they have ended."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from drachma.accounting import resourcenames
from drachma.accounting.quota import evaluator, podresources
from drachma.api import pod
from drachma.api.resourcequota import ScopedResourceSelectorRequirement as Requirement
from drachma.values import names as naming
from drachma.values import quantity

_COUNT: Final = "count/pods"
_PODS: Final = "pods"
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_REQUESTS: Final = "requests."
_LIMITS: Final = "limits."
_NAMES: Final = frozenset({_COUNT, _PODS, *_COMPUTE, *(p + name for p in (_REQUESTS, _LIMITS) for name in _COMPUTE)})
_HUGE_PAGES: Final = ("hugepages-", "requests.hugepages-")
_MUST_BE_STATED: Final = frozenset({p + name for p in ("", _REQUESTS, _LIMITS) for name in ("cpu", "memory")})
"""Resources that every container must state if a quota limits them; upstream regrets that, and keeps it."""

_ENDED: Final = ("Failed", "Succeeded")


class Pods:
    """Evaluator of pods.

    With ``counts_claims``, a pod is also charged for what its claims add to its requests. That is known when the
    scheduler has chosen devices and writes it to the pod's status. A status beyond the limit is refused, and the pod
    waits.
    """

    model: Final = pod.Pod
    owed: Final[frozenset[str]] = frozenset()

    def __init__(self, *, counts_claims: bool = False) -> None:
        self._counts_claims: Final = counts_claims
        self.subresources: Final = frozenset({"", "resize", "status"} if counts_claims else {"", "resize"})

    def concerns(self, change: evaluator.Change[pod.Pod]) -> bool:
        if change.old is not None and change.subresource == "status":
            before, after = change.old.status, change.new.status
            return before.node_allocatable_resource_claim_statuses != after.node_allocatable_resource_claim_statuses
        if change.old is None or change.subresource:
            return True
        # The pod may have come into the scope of another quota.
        return is_terminating(change.old) != is_terminating(change.new)

    def counted(self, names: Iterable[str], _facts: evaluator.Facts) -> frozenset[str]:
        return frozenset(
            name for name in names if name in _NAMES or name.startswith(_HUGE_PAGES) or is_extended_request(name)
        )

    def is_in_scope(self, subject: pod.Pod, requirement: Requirement) -> bool:
        match requirement.scope_name:
            case evaluator.TERMINATING:
                return is_terminating(subject)
            case evaluator.NOT_TERMINATING:
                return not is_terminating(subject)
            case evaluator.BEST_EFFORT:
                return podresources.is_best_effort(subject)
            case evaluator.NOT_BEST_EFFORT:
                return not podresources.is_best_effort(subject)
            case evaluator.PRIORITY_CLASS:
                name = subject.spec.priority_class_name
                return evaluator.is_met(requirement, (name,) if name else ())
            case evaluator.CROSS_NAMESPACE_POD_AFFINITY:
                return _reaches_out(subject)
        return False

    def omission(self, subject: pod.Pod, required: frozenset[str]) -> str:
        required &= _MUST_BE_STATED
        if not required or podresources.has_budget(subject):
            return ""
        lacking: dict[str, set[str]] = {}
        for container in (*subject.spec.containers, *subject.spec.init_containers):
            for name in required - _compute(container.resources.requests, container.resources.limits).keys():
                lacking.setdefault(name, set()).add(container.name)
        if not lacking:
            return ""
        listed = (f"{name} for: {','.join(sorted(lacking[name]))}" for name in sorted(lacking))
        return f"must specify {'; '.join(listed)}"

    def usage(self, subject: pod.Pod, facts: evaluator.Facts) -> evaluator.Amounts:
        return usage(subject, now=facts.now, counts_claims=self._counts_claims)


def usage(subject: pod.Pod, *, now: datetime, counts_claims: bool = False) -> dict[str, quantity.Quantity]:
    """Return the use of a pod. Of a pod that has ended only the object counts."""
    used = {_COUNT: evaluator.ONE}
    if is_charged(subject, now=now):
        added = podresources.claim_additions(subject) if counts_claims else {}
        used |= _compute(podresources.requested(subject, added), podresources.limited(subject, added))
        used[_PODS] = evaluator.ONE
    return used


def is_charged(subject: pod.Pod, *, now: datetime) -> bool:
    """Return True if a pod counts with its requests: until it has ended, or should have been gone for long."""
    if subject.status.phase in _ENDED:
        return False
    deletion, grace = subject.metadata.deletion_timestamp, subject.metadata.deletion_grace_period_seconds
    return deletion is None or grace is None or now <= deletion + timedelta(seconds=grace)


def is_terminating(subject: pod.Pod) -> bool:
    """Return True if a pod has an active deadline."""
    deadline = subject.spec.active_deadline_seconds
    return deadline is not None and deadline >= 0


def is_extended_request(name: str) -> bool:
    """Return True for ``requests.`` of an extended resource, or of one named after a class."""
    if not name.startswith(_REQUESTS):
        return False
    return not naming.is_native_resource(name) or name.startswith(_REQUESTS + resourcenames.DEVICE_CLASS_PREFIX)


def _compute(requests: pod.ResourceList, limits: pod.ResourceList) -> dict[str, quantity.Quantity]:
    used = {}
    for name in _COMPUTE:
        if name in requests:
            used[name] = used[_REQUESTS + name] = requests[name]
        if name in limits:
            used[_LIMITS + name] = limits[name]
    for name, amount in requests.items():
        if naming.is_huge_page_resource(name):
            used[name] = used[_REQUESTS + name] = amount
        elif resourcenames.may_be_devices(name):
            used[_REQUESTS + name] = amount
    return used


def _reaches_out(subject: pod.Pod) -> bool:
    """Return True if a pod has affinity rules about pods of other namespaces."""
    affinity = subject.spec.affinity
    if affinity is None:
        return False
    for rules in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if rules is None:
            continue
        preferred = [each.pod_affinity_term for each in rules.preferred_during_scheduling_ignored_during_execution]
        for term in (*rules.required_during_scheduling_ignored_during_execution, *preferred):
            if term.namespaces or term.namespace_selector is not None:
                return True
    return False
