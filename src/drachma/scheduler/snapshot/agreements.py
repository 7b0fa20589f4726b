"""Agreements: constraints on the devices of all pods of a PodGroup, declared by annotations of the group.

=====================================  ===============================================================================
``drachma.dev/match-attributes``       attributes that have one value for all devices
``drachma.dev/distinct-attributes``    attributes that have another value for every device
``drachma.dev/same-alternative``       ``true``: all pods take the same alternative of a prioritized list
=====================================  ===============================================================================

Attributes are separated by commas and have a domain, for instance ``nic.example.com/rail``. ``rail@net`` limits the
constraint to the entry ``net`` of the pods' claims, and ``rail@net/nic`` to a request of that claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from drachma.values import names

MATCH: Final = "drachma.dev/match-attributes"
DISTINCT: Final = "drachma.dev/distinct-attributes"
SAME_ALTERNATIVE: Final = "drachma.dev/same-alternative"

_MOST_RULES: Final = 8


class Rule(NamedTuple):
    """Attribute, and the claims and requests whose devices it is compared for."""

    attribute: str
    entry: str = ""
    """Entry of the pods' claims; empty for all."""
    request: str = ""
    """Request of these claims; empty for all."""

    def __str__(self) -> str:
        scope = "/".join(filter(None, (self.entry, self.request)))
        return f"{self.attribute}@{scope}" if scope else self.attribute


class Agreement(NamedTuple):
    """Constraints of one group."""

    match: tuple[Rule, ...] = ()
    distinct: tuple[Rule, ...] = ()
    same_alternative: bool = False
    problem: str = ""
    """Problem of an annotation; empty if all are well-formed."""

    def __bool__(self) -> bool:
        return bool(self.match or self.distinct or self.same_alternative)

    def without(self, position: int) -> Agreement:
        """Return the agreement without one of its parts."""
        parts = self.parts
        remaining_parts = [part for number, part in enumerate(parts) if number != position]
        return Agreement(
            tuple(rule for name, rule in remaining_parts if name == MATCH and rule is not None),
            tuple(rule for name, rule in remaining_parts if name == DISTINCT and rule is not None),
            any(name == SAME_ALTERNATIVE for name, _ in remaining_parts),
        )

    @property
    def parts(self) -> tuple[tuple[str, Rule | None], ...]:
        """Constraints with the names of their annotations."""
        alternative: tuple[tuple[str, Rule | None], ...] = ((SAME_ALTERNATIVE, None),) if self.same_alternative else ()
        return (*((MATCH, rule) for rule in self.match), *((DISTINCT, rule) for rule in self.distinct), *alternative)


NONE: Final = Agreement()


def read(annotations: Mapping[str, str]) -> Agreement:
    """Return the agreement that annotations of a group declare."""
    if not annotations or not annotations.keys() & {MATCH, DISTINCT, SAME_ALTERNATIVE}:
        return NONE
    problems: list[str] = []
    match = _rules(annotations, MATCH, problems)
    distinct = _rules(annotations, DISTINCT, problems)
    text = annotations.get(SAME_ALTERNATIVE, "false")
    if text not in ("true", "false"):
        problems.append(f'annotation {SAME_ALTERNATIVE}: "{text}": expected true or false')
    return Agreement(match, distinct, text == "true", problems[0] if problems else "")


def _rules(annotations: Mapping[str, str], annotation: str, problems: list[str]) -> tuple[Rule, ...]:
    text = annotations.get(annotation, "")
    items = [item.strip() for item in text.split(",") if item.strip()]
    if len(items) > _MOST_RULES:
        problems.append(f"annotation {annotation}: {len(items)} attributes: at most {_MOST_RULES} are allowed")
        return ()
    rules: list[Rule] = []
    for item in items:
        attribute, _, scope = item.partition("@")
        domain, slash, name = attribute.partition("/")
        entry, _, request = scope.partition("/")
        is_name = name.replace("_", "a").isalnum() and name.isascii() and not name[0].isdigit()
        if not slash or not is_name or names.dns1123_subdomain(domain):
            problems.append(f'annotation {annotation}: "{item}": expected domain/name, or domain/name@claim/request')
            continue
        rules.append(Rule(attribute, entry, request))
    return tuple(rules)
