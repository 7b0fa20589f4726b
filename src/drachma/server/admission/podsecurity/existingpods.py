"""Warnings about the pods of a namespace that violate its new policy.

A namespace may have more pods than can be evaluated while other clients wait. So the plugin asks for the warnings as
it asks webhooks, and they are computed in slices between which the event loop is free.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from drachma.server.admission.podsecurity import podviews
from drachma.server.admission.podsecurity.checks import evaluate
from drachma.server.admission.podsecurity.policies import LevelVersion
from drachma.values import quotation

MOST_PODS: Final = 3000
"""Pods that are evaluated at most."""

SECONDS: Final = 1.0
"""Time limit for evaluating them."""

_SLICE_SECONDS: Final = 0.005


class StoredPod(Protocol):
    """Pod in the store, which decodes it each time: documents of all pods together may not fit in memory."""

    @property
    def value(self) -> Mapping[str, Any]: ...


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Namespace whose pods are evaluated, and the standard that it is going to enforce."""

    namespace: str
    standard: LevelVersion
    exempt_runtime_classes: frozenset[str]


class _Group(NamedTuple):
    """Pods with the same violations: the first of their names, and their number."""

    name: str
    size: int

    def __str__(self) -> str:
        if self.size == 1:
            return self.name
        noun = podviews.choose_number(self.size - 1, "pod", "pods")
        return f"{self.name} (and {self.size - 1} other {noun})"


class _Pace:
    """Time that is left, and pauses for other tasks."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now: Final = now
        self._deadline: Final = now() + SECONDS
        self._slice_end = now() + _SLICE_SECONDS

    async def pause(self) -> bool:
        """Let other tasks run if it is their turn. Return False once the time is up."""
        time = self._now()
        if time >= self._slice_end:
            await asyncio.sleep(0)
            self._slice_end = self._now() + _SLICE_SECONDS
        return time < self._deadline


async def find_warnings(question: Question, pods: Iterable[StoredPod], now: Callable[[], float]) -> tuple[str, ...]:
    """Return the warnings about pods of the namespace; none if all comply. ``now`` is a monotonic clock in seconds."""
    pace = _Pace(now)
    candidates = await _prioritize(question, pods, pace)
    groups: dict[str, _Group] = {}
    checked_count = 0
    for candidate in candidates[:MOST_PODS]:
        pod = candidate.value
        evaluation = evaluate(podviews.view(pod["metadata"], pod["spec"]), question.standard)
        checked_count += 1
        if evaluation.violations:
            name, group = pod["metadata"]["name"], groups.get(evaluation.reasons)
            groups[evaluation.reasons] = (
                _Group(name, 1) if group is None else _Group(min(group.name, name), group.size + 1)
            )
        if not await pace.pause():
            break
    warnings = []
    if checked_count < len(candidates):
        warnings.append(
            f"new PodSecurity enforce level only checked against the first {checked_count} of {len(candidates)} "
            "existing pods"
        )
    if groups:
        warnings.append(
            f"existing pods in namespace {quotation.quote(question.namespace)} violate the new PodSecurity enforce "
            f'level "{question.standard}"'
        )
    return (*warnings, *sorted(f"{group}: {reasons}" for reasons, group in groups.items()))


async def _prioritize(question: Question, pods: Iterable[StoredPod], pace: _Pace) -> Sequence[StoredPod]:
    """Return the pods that are not exempt: one of each controller, then the others of controllers."""
    first: list[StoredPod] = []
    siblings: list[StoredPod] = []
    controllers: set[str] = set()
    for candidate in pods:
        await pace.pause()
        pod = candidate.value
        if pod["spec"].get("runtimeClassName") in question.exempt_runtime_classes:
            continue
        owners = pod["metadata"].get("ownerReferences") or ()
        controller = next((owner.get("uid", "") for owner in owners if owner.get("controller")), None)
        if controller is not None and controller in controllers:
            siblings.append(candidate)
            continue
        if controller is not None:
            controllers.add(controller)
        first.append(candidate)
    return [*first, *siblings]
