"""Registry of webhooks in the order of their configurations' names, updated when they change."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.cel import admission, conditions, types
from drachma.server.admission.matching import Criteria, Place
from drachma.server.admission.policyexpressions import compiled
from drachma.server.reads.reader import Reader

_VERSIONS: Final = ("v1", "v1beta1")


class Webhook:
    """One webhook. ``key`` identifies it."""

    def __init__(self, document: Mapping[str, Any], *, configuration: str, position: int) -> None:
        self.name: str = document["name"]
        self.configuration: Final = configuration
        self.key: Final = (configuration, position, self.name)
        self.criteria: Final = Criteria(document, rules="rules")
        self.has_rules: Final = bool(document.get("rules"))
        self.client: Mapping[str, Any] = document.get("clientConfig") or {}
        self.ignores_failure: bool = document.get("failurePolicy") == "Ignore"
        self.has_side_effects: bool = document.get("sideEffects") not in ("None", "NoneOnDryRun")
        self.is_reinvoked: bool = document.get("reinvocationPolicy") == "IfNeeded"
        self.seconds: int = document.get("timeoutSeconds") or 10
        accepted = document.get("admissionReviewVersions") or ()
        self.version: Final = next((each for each in accepted if each in _VERSIONS), "")
        compiler = admission.Compiler(has_params=False, composes=False)
        self.conditions: Final = [
            compiled(compiler, each["expression"], types.BOOL) for each in document.get("matchConditions") or ()
        ]
        self.names: Final = frozenset[str]().union(*(each.names for each in self.conditions))

    def holds(self, inputs: Mapping[str, Any]) -> bool:
        """Return True if its match conditions hold; raises like :func:`conditions.match`."""
        activation = conditions.Activation(inputs, budget=conditions.MATCH_BUDGET)
        return conditions.match(self.conditions, activation)


class Webhooks:
    """All webhooks of one kind."""

    def __init__(self, store: Reader, *, configurations: str) -> None:
        """``configurations`` is the key of the resource."""
        self._store: Final = store
        self._key: Final = configurations
        self._revision = -1
        self._webhooks: tuple[Webhook, ...] = ()
        self._by_place: dict[Place, tuple[Webhook, ...]] = {}

    @property
    def is_empty(self) -> bool:
        """True if there are no webhooks."""
        if self._store.changed(self._key) > self._revision:
            self._refresh()
        return not self._webhooks

    def covering(self, place: Place) -> Sequence[Webhook]:
        """Return the webhooks that can match requests of a place; check :attr:`is_empty` first."""
        webhooks = self._by_place.get(place)
        if webhooks is None:
            webhooks = tuple(each for each in self._webhooks if each.criteria.covers(place))
            self._by_place[place] = webhooks
        return webhooks

    def _refresh(self) -> None:
        """Read the webhooks again. An interruption (effort.OverrunError) leaves that to the next lookup."""
        revision = self._store.revision
        configurations = sorted(self._store.list(self._key).records, key=lambda each: each.key.name)
        self._webhooks = tuple(
            Webhook(document, configuration=each.key.name, position=position)
            for each in configurations
            for position, document in enumerate(each.value.get("webhooks") or ())
            # A webhook without rules never matches.
            if document.get("rules")
        )
        self._by_place = {}
        self._revision = revision
