"""Policies with their bindings, as they are stored now: compiled when they change, and found by what they are about.

Whoever asks gets the policies that can be about a request; where there are none, asking costs two comparisons. Compiled
policies are kept as long as they are stored; which of them cover a place (a resource and an operation on it) is worked
out once for each.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from drachma.server.admission.matching import Criteria, Place
from drachma.server.reads.reader import Reader
from drachma.store import record


class Policy(Protocol):
    """What all policies have."""

    @property
    def criteria(self) -> Criteria: ...


_PolicyT = TypeVar("_PolicyT", bound=Policy)


class Binding(NamedTuple):
    """Where a policy holds, with which parameters, and what comes of it."""

    name: str
    criteria: Criteria | None
    param_ref: Mapping[str, Any] | None
    actions: tuple[str, ...]

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> "Binding":
        """A stored binding."""
        spec = document["spec"]
        resources = spec.get("matchResources")
        criteria = None if resources is None else Criteria(resources, rules="resourceRules")
        actions = tuple(spec.get("validationActions") or ())
        return cls(document["metadata"]["name"], criteria, spec.get("paramRef"), actions)


class Hook(NamedTuple, Generic[_PolicyT]):
    """A policy that is bound."""

    policy: _PolicyT
    bindings: tuple[Binding, ...]


class Registry(Generic[_PolicyT]):
    """All policies of one sort."""

    def __init__(
        self, store: Reader, *, policies: str, bindings: str, compile_: Callable[[Mapping[str, Any]], _PolicyT]
    ) -> None:
        """``policies`` and ``bindings`` are keys of resources."""
        self._store: Final = store
        self._policies_key: Final = policies
        self._bindings_key: Final = bindings
        self._compile: Final = compile_
        self._revision = -1
        self._compiled: dict[tuple[str, int], _PolicyT] = {}
        self._hooks: tuple[Hook[_PolicyT], ...] = ()
        self._by_place: dict[Place, tuple[Hook[_PolicyT], ...]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no policy is bound."""
        store = self._store
        if store.changed(self._policies_key) > self._revision or store.changed(self._bindings_key) > self._revision:
            self._refresh()
        return not self._hooks

    def covering(self, place: Place) -> Sequence[Hook[_PolicyT]]:
        """The policies that can be about requests of a place, by name; ask :attr:`is_empty` first."""
        hooks = self._by_place.get(place)
        if hooks is None:
            hooks = tuple(hook for hook in self._hooks if hook.policy.criteria.covers(place))
            self._by_place[place] = hooks
        return hooks

    def _refresh(self) -> None:
        self._revision = self._store.revision
        bindings: dict[str, list[Binding]] = {}
        for stored in self._store.list(self._bindings_key).records:
            bindings.setdefault(stored.value["spec"].get("policyName", ""), []).append(Binding.read(stored.value))
        bound = [stored for stored in self._store.list(self._policies_key).records if stored.key.name in bindings]
        self._compiled = {_version(stored): self._current(stored) for stored in bound}
        self._hooks = tuple(
            Hook(self._compiled[_version(stored)], tuple(bindings[stored.key.name]))
            for stored in sorted(bound, key=lambda each: each.key.name)
        )
        self._by_place = {}

    def _current(self, stored: record.Record) -> _PolicyT:
        known = self._compiled.get(_version(stored))
        return self._compile(stored.value) if known is None else known


def _version(stored: record.Record) -> tuple[str, int]:
    # A change of the status makes no other policy.
    return stored.uid, stored.value["metadata"].get("generation", 0)
