"""Fork maps: each fork is a dictionary of its own, as plain copies would be."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drachma.values import forkmap

KEYS = st.integers(0, 9)
OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["set", "delete", "pop", "mutate", "fork"]),
        st.integers(0, 5),  # of the maps there are by then
        KEYS,
    ),
    max_size=60,
)


@settings(max_examples=200)
@given(OPERATIONS)
def test_forks_are_as_deep_copies_are(operations: list[tuple[str, int, int]]) -> None:
    maps = [forkmap.ForkMap[int, list[int]](copy=list)]
    models: list[dict[int, list[int]]] = [{}]
    for number, (act, which, key) in enumerate(operations):
        which %= len(maps)
        subject, model = maps[which], models[which]
        match act:
            case "set":
                subject[key] = [number]
                model[key] = [number]
            case "delete" if key in model:
                del subject[key], model[key]
            case "pop":
                assert subject.pop(key, None) == model.pop(key, None)
            case "mutate" if key in model:
                subject.mutable(key).append(number)
                model[key].append(number)
            case "fork":
                maps.append(subject.fork())
                models.append({name: list(values) for name, values in model.items()})
        for each, want in zip(maps, models, strict=True):
            assert dict(each.items()) == dict(each) == want
            assert (len(each), bool(each), set(each), set(each.keys())) == (len(want), bool(want), set(want), set(want))
            assert sorted(map(tuple, each.values())) == sorted(map(tuple, want.values()))


def test_what_is_not_there() -> None:
    subject = forkmap.ForkMap[str, int]()
    subject["a"] = 1
    assert ("a" in subject, "b" in subject) == (True, False)
    assert (subject.get("b"), subject.get("b", 7), subject.pop("b", 7)) == (None, 7, 7)
    with pytest.raises(KeyError):
        subject["b"]
    with pytest.raises(KeyError):
        forkmap.ForkMap[str, list[int]](copy=list).mutable("b")


def test_what_is_no_fork_keeps_the_order() -> None:
    subject = forkmap.ForkMap[str, int]()
    for number, name in enumerate("cab"):
        subject[name] = number
    subject.fork()["0"] = 3
    assert list(subject.items()) == [("c", 0), ("a", 1), ("b", 2)]


def test_what_was_read_from_a_fork_stays_as_it_was() -> None:
    subject = forkmap.ForkMap[str, list[int]](copy=list)
    subject["a"] = [1]
    fork = subject.fork()
    value = fork["a"]
    subject.mutable("a").append(2)
    assert (value, fork["a"], subject["a"]) == ([1], [1], [1, 2])


def test_forks_that_are_gone_cost_nothing() -> None:
    subject = forkmap.ForkMap[str, list[int]](copy=list)
    subject["a"] = [1]
    for _ in range(100):
        subject.fork()
    value = subject["a"]
    assert subject.mutable("a") is value


@pytest.mark.parametrize("change", ["clear", "popitem", "setdefault", "update"])
def test_changes_that_forks_would_not_notice_are_refused(change: str) -> None:
    with pytest.raises(TypeError, match="entry by entry"):
        getattr(forkmap.ForkMap[str, int](), change)()


def test_values_that_cannot_be_copied_cannot_be_changed() -> None:
    subject = forkmap.ForkMap[str, list[int]]()
    subject["a"] = []
    with pytest.raises(TypeError, match="no way to copy"):
        subject.mutable("a")


def test_what_a_fork_hands_on_is_not_changed_by_its_parent() -> None:
    root: forkmap.ForkMap[str, dict[str, int]] = forkmap.ForkMap(copy=dict)
    root["a"] = {"x": 1}
    middle = root.fork()
    leaf = middle.fork()
    middle.mutable("a")["x"] = 2
    root.mutable("a")["x"] = 3
    assert (root["a"], middle["a"], leaf["a"]) == ({"x": 3}, {"x": 2}, {"x": 1})
    leaf.mutable("a")["x"] = 4
    assert (root["a"], middle["a"], leaf["a"]) == ({"x": 3}, {"x": 2}, {"x": 4})
