"""Object counts: any kind can be limited by ``count/<plural>.<group>``, and a few by a name of their own."""

from collections.abc import Iterable
from typing import Final

from drachma.accounting.quota import amounts, evaluator
from drachma.api import meta
from drachma.api.resourcequota import ScopedResourceSelectorRequirement as Requirement

PREFIX: Final = "count/"

_OWN_NAMES: Final = frozenset({"configmaps", "replicationcontrollers", "resourcequotas", "secrets"})
"""Core kinds whose plural is the name of a resource as well."""


def name(group: str, plural: str) -> str:
    """The resource that counts the objects of a kind."""
    return f"{PREFIX}{plural}.{group}" if group else f"{PREFIX}{plural}"


class ObjectCount:
    """The evaluator of kinds of which only the number counts."""

    model: Final = meta.Object
    subresources: Final = frozenset({""})

    def __init__(self, group: str, plural: str) -> None:
        names = {name(group, plural)} | ({plural} & _OWN_NAMES if not group else set())
        self._usage: Final = dict.fromkeys(sorted(names), amounts.ONE)

    def concerns(self, change: evaluator.Change[meta.Object]) -> bool:
        return change.old is None

    def counted(self, names: Iterable[str], _facts: evaluator.Facts) -> frozenset[str]:
        return frozenset(names) & self._usage.keys()

    def is_in_scope(self, _subject: meta.Object, _requirement: Requirement) -> bool:
        return False

    def omission(self, _subject: meta.Object, _required: frozenset[str]) -> str:
        return ""

    def usage(self, _subject: meta.Object, _facts: evaluator.Facts) -> amounts.Amounts:
        return self._usage
