"""Selection: which objects of a collection a call concerns, and what their changes mean to who sees only those.

Lists, watches through both doors and the deletion of collections select here, so they agree.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from drachma.server.calls import options
from drachma.store import record
from drachma.values import labels as label_values

Matcher: TypeAlias = Callable[[record.Record], bool]

_EQUALITIES: Final = (label_values.Operator.EQUALS, label_values.Operator.DOUBLE_EQUALS, label_values.Operator.IN)


def matcher(selectors: options.ListOptions) -> Matcher | None:
    """Whether an object is selected; None where all are.

    Most selectors want a certain text in a certain field. Objects whose JSON does not have it anywhere are not even
    decoded, so that picking a node's few objects out of many thousands is quick.
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
    """What events mean to who selects: an object that begins to match is new to it, one that ends to is gone.

    What is gone is shown as it was when it still matched, at the revision of the event that took it away.
    """
    for event in events:
        before = event.previous is not None and matches(event.previous)
        after = event.change is not record.Change.DELETED and matches(event.record)
        if after:
            yield record.Change.MODIFIED if before else record.Change.ADDED, event.record
        elif before:
            assert event.previous is not None, "something matched before"
            yield record.Change.DELETED, _last_seen(event.previous, event.revision)


def _last_seen(previous: record.Record, revision: int) -> record.Record:
    body = record.stamped_deletion(previous, revision)
    return record.Record(previous.key, previous.uid, previous.create_revision, revision, body.data, body.value)


def _label_needles(selector: label_values.Selector) -> Iterator[bytes]:
    for requirement in selector.requirements:
        if requirement.operator in _EQUALITIES and len(requirement.values) == 1:
            yield b'"%b":"%b"' % (requirement.key.encode(), requirement.values[0].encode())
