"""Selection of objects by selectors, and of the changes that a selective watch sees.

Lists, watches and the deletion of collections all select here, so they agree.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from drachma.server.calls import options
from drachma.store import record
from drachma.values import labels as label_values

Matcher: TypeAlias = Callable[[record.Record], bool]

_EQUALITIES: Final = (label_values.Operator.EQUALS, label_values.Operator.DOUBLE_EQUALS, label_values.Operator.IN)


def matcher(selectors: options.ListOptions) -> Matcher | None:
    """Return a predicate of selected objects; None if all are selected.

    Most selectors compare a field with a text. Objects whose JSON does not contain it are not decoded, so that finding
    a node's few objects among many thousands is fast.
    """
    if not selectors.is_selective:
        return None
    fields, labels = selectors.fields, selectors.labels
    needles = [*fields.needles(), *_label_needles(labels)]

    def matches(item: record.Record) -> bool:
        data = item.data
        for needle in needles:
            if needle not in data:
                return False
        value = item.value
        return labels.matches(value["metadata"].get("labels") or {}) and fields.matches(value)

    return matches


def changes(events: Sequence[record.Event], matches: Matcher) -> Iterator[tuple[record.Change, record.Record]]:
    """Yield the changes that a selective watch sees.

    An object that begins to match is added, and one that ceases to match is deleted. A deleted object is shown as it
    was when it still matched, at the revision of the event that removed it.
    """
    for event in events:
        before = event.previous is not None and matches(event.previous)
        after = event.change is not record.Change.DELETED and matches(event.record)
        if after:
            yield record.Change.MODIFIED if before else record.Change.ADDED, event.record
        elif before:
            assert event.previous is not None, "a previous version matched"
            yield record.Change.DELETED, _last_seen(event.previous, event.revision)


def _last_seen(previous: record.Record, revision: int) -> record.Record:
    body = record.make_deletion_body(previous, revision)
    return record.Record(previous.key, previous.uid, previous.create_revision, revision, body.data, body.value)


def _label_needles(selector: label_values.Selector) -> Iterator[bytes]:
    for requirement in selector.requirements:
        if requirement.operator in _EQUALITIES and len(requirement.values) == 1:
            yield b'"%b":"%b"' % (requirement.key.encode(), requirement.values[0].encode())
