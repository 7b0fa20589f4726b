"""The memory of what rules found nothing wrong with."""

from collections.abc import Iterator

from drachma.validation import approvals, declared, fielderror
from drachma.validation.declared import Values
from drachma.validation.fielderror import FieldError, Found
from drachma.validation.path import ROOT, Path


def test_parts_are_told_by_identity_and_facts() -> None:
    sound = approvals.Approvals(limit=8)
    part, equal = [1], [1]
    sound.add(part, "fact")
    assert sound.has(part, "fact")
    assert not sound.has(part, "other")
    assert not sound.has(part)
    assert not sound.has(equal, "fact")


def test_parts_are_kept_while_they_are_remembered() -> None:
    sound = approvals.Approvals(limit=100)
    known = {id(part) for part in remember(sound, 100)}
    assert not any(id(part) in known for part in ([number] for number in range(100)))


def remember(sound: approvals.Approvals, count: int) -> Iterator[list[int]]:
    for number in range(count):
        part = [number]
        sound.add(part)
        yield part


def test_a_full_memory_forgets() -> None:
    sound = approvals.Approvals(limit=2)
    parts = list(remember(sound, 3))
    assert [sound.has(part) for part in parts] == [False, False, True]


def test_a_rule_with_a_memory_looks_once_at_what_is_good_and_new() -> None:
    looked_at: list[object] = []

    def rule(values: Values, at: Path) -> Found:
        looked_at.append(values.new)
        return [FieldError(fielderror.Reason.REQUIRED, str(at))] if not values.new else ()

    remembered = declared.remembered(rule)
    good, bad = ("x",), ()
    for value in (good, good, bad, bad):
        assert len(remembered(Values(value), ROOT)) == (not value)
    assert looked_at == [good, bad, bad]
    remembered(Values(good, good, is_update=True), ROOT)
    assert looked_at[3:] == [good]
