"""Registry of policies with their bindings, compiled when they change, and found by the place of a request.

Without any policies a lookup costs two comparisons. Compiled policies are kept as long as they are stored. The policies
that cover a place (a resource and an operation) are computed once per place.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from drachma.server.admission.matching import Criteria, Place
from drachma.server.reads.reader import Reader
from drachma.store import record


class Policy(Protocol):
    """Common part of all policies."""

    @property
    def criteria(self) -> Criteria: ...


_PolicyT = TypeVar("_PolicyT", bound=Policy)


class Binding(NamedTuple):
    """Criteria, parameters and actions of a binding."""

    name: str
    criteria: Criteria | None
    param_ref: Mapping[str, Any] | None
    actions: tuple[str, ...]

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> "Binding":
        """Read a stored binding."""
        spec = document["spec"]
        resources = spec.get("matchResources")
        criteria = None if resources is None else Criteria(resources, rules="resourceRules")
        actions = tuple(spec.get("validationActions") or ())
        return cls(document["metadata"]["name"], criteria, spec.get("paramRef"), actions)


class Hook(NamedTuple, Generic[_PolicyT]):
    """A policy with its bindings."""

    policy: _PolicyT
    bindings: tuple[Binding, ...]


class Registry(Generic[_PolicyT]):
    """All policies of one kind."""

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
        """True if no policy has a binding."""
        store = self._store
        if store.changed(self._policies_key) > self._revision or store.changed(self._bindings_key) > self._revision:
            self._refresh()
        return not self._hooks

    def covering(self, place: Place) -> Sequence[Hook[_PolicyT]]:
        """Return the policies that can match requests of a place, by name; check :attr:`is_empty` first."""
        hooks = self._by_place.get(place)
        if hooks is None:
            hooks = tuple(hook for hook in self._hooks if hook.policy.criteria.covers(place))
            self._by_place[place] = hooks
        return hooks

    def _refresh(self) -> None:
        """Compile policies that have changed. An interruption (effort.OverrunError) leaves them for the next lookup."""
        revision = self._store.revision
        bindings: dict[str, list[Binding]] = {}
        for source in self._store.list(self._bindings_key).records:
            bindings.setdefault(source.value["spec"].get("policyName", ""), []).append(Binding.read(source.value))
        bound = [source for source in self._store.list(self._policies_key).records if source.key.name in bindings]
        compiled = {_version(source): self._current(source) for source in bound}
        hooks = tuple(
            Hook(compiled[_version(source)], tuple(bindings[source.key.name]))
            for source in sorted(bound, key=lambda each: each.key.name)
        )
        self._compiled, self._hooks, self._by_place = compiled, hooks, {}
        self._revision = revision

    def _current(self, source: record.Record) -> _PolicyT:
        compiled = self._compiled.get(_version(source))
        return self._compile(source.value) if compiled is None else compiled


def _version(source: record.Record) -> tuple[str, int]:
    # A change of the status does not change the policy.
    return source.uid, source.value["metadata"].get("generation", 0)
