"""Ownership through many writes: the same, byte for byte, whether like writes are parts or all go the long way."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drachma.server import parts
from drachma.server.ownership import managedfields, managers, transitions
from tests.unit.server import served

NOW = datetime(2026, 1, 1, tzinfo=UTC)
UIDS = ("u", "u1", "v")


class Step(NamedTuple):
    """A write of ``state``; ``sent`` makes the entries that come along with it of those that are there."""

    manager: str
    subresource: str
    version: int
    seconds: int
    state: dict[str, Any]
    sent: Callable[[Any], Any]


def _some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects in which now and then a field is missing."""
    maybe = [each | st.just(_MISSING) if number % 2 else each for number, each in enumerate(fields.values())]
    return st.tuples(*maybe).map(
        lambda values: {name: value for name, value in zip(fields, values, strict=True) if value is not _MISSING}
    )


def _keyed(key: str, names: tuple[str, ...], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Lists of items that are known by a key, sometimes by the same one twice."""
    return st.lists(_some(**{key: st.sampled_from(names)}, **fields), max_size=3)


_MISSING = object()
_TEXT = st.sampled_from("12")
_METADATA = _some(
    labels=st.dictionaries(st.sampled_from(["a", "a", "a", 'b"k:{"uid":"u"}']), _TEXT, max_size=2),
    finalizers=st.lists(st.sampled_from(["x", "y"]), max_size=2),
    ownerReferences=_keyed("uid", UIDS, name=_TEXT),
    generation=st.sampled_from([1, 2]),
)
_CLAIMS = _some(
    spec=_some(devices=_some(requests=st.sampled_from([None, [], [{"name": "r"}]]))),
    status=_some(
        allocation=_some(devices=st.sampled_from([{}, {"results": [{"device": "d"}]}])),
        reservedFor=_keyed("uid", UIDS, name=_TEXT, resource=_TEXT),
    ),
)
_PODS = _some(
    spec=_some(
        nodeName=_TEXT,
        containers=_keyed("name", ("c", "d"), image=_TEXT, command=st.sampled_from([["a"], ["b"]])),
        hostAliases=_keyed("ip", ("10.0.0.1", "10.0.0.10"), hostnames=st.sampled_from([["a"], ["b"]])),
        hostNetwork=st.sampled_from([True, False, 1]),
    ),
    status=_some(
        phase=_TEXT,
        podIPs=_keyed("ip", ("10.0.0.1", "10.0.0.2")),
        conditions=_keyed("type", ("Ready",), status=_TEXT),
        unknown=st.sampled_from([1, True, {"a": 1}, {"a": True}, {}, None]),
    ),
)
_SENT: list[Callable[[Any], Any]] = [
    lambda entries: entries,
    lambda _entries: None,
    lambda _entries: [],
    lambda _entries: [{"manager": "broken"}],
    lambda entries: (entries or [])[:1],
]


def _steps(states: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[list[Step]]:
    step = st.builds(
        Step,
        manager=st.sampled_from(["one", "two"]),
        subresource=st.sampled_from(["", "", "status"]),
        version=st.sampled_from([0, 0, 0, 0, 0, 1]),
        seconds=st.sampled_from([0, 1]),
        state=st.builds(lambda metadata, rest: {"metadata": {"name": "o", **metadata}, **rest}, _METADATA, states),
        sent=st.sampled_from([*_SENT, *[_SENT[0]] * 10]),
    )
    return st.lists(step, min_size=2, max_size=4)


def _kind(name: str, step: Step) -> managers.Kind:
    group, plural = ("", "pods") if name == "Pod" else ("resource.k8s.io", "resourceclaims")
    resource = served.CATALOG.find(group, "v1", plural=plural)
    assert resource is not None
    versions = ("v1",) if name == "Pod" else ("v1", "v1beta2")
    version = versions[step.version % len(versions)]
    return managers.Kind.of(
        resource,
        version,
        convert=_converted,
        subresource=step.subresource,
    )


def _converted(document: dict[str, Any], api_version: str) -> dict[str, Any]:
    """Another version shows no spec, so what is changed there is not changed in that version."""
    return {**document, "apiVersion": api_version, "spec": {}}


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """A document with other values under ``uid`` and ``ip``."""
    if isinstance(value, dict):
        return {
            key: names.get(part, part) if key in ("uid", "ip") else _renamed(part, names) for key, part in value.items()
        }
    return [_renamed(item, names) for item in value] if isinstance(value, list) else value


def _written(name: str, steps: list[Step], *, names: Mapping[str, str], interner: parts.Interner) -> list[bytes]:
    """The entries after each write."""
    live: dict[str, Any] | None = None
    moment = NOW
    trace = []
    for step in steps:
        moment += timedelta(seconds=step.seconds)
        kind = _kind(name, step)
        manager = names.get(step.manager, step.manager)
        new = {"kind": name, "apiVersion": kind.api_version, **_renamed(step.state, names)}
        known = live["metadata"].get("managedFields") if live else None
        sent = step.sent(known)
        if sent is not None:
            new["metadata"]["managedFields"] = sent
        if live is None:
            entries = managedfields.entries_after_create(new, manager=manager, kind=kind, now=moment, interner=interner)
        else:
            entries = managedfields.entries_after_update(
                live, new, manager=manager, kind=kind, now=moment, interner=interner
            )
        new["metadata"].pop("managedFields", None)
        if entries:
            new["metadata"]["managedFields"] = list(entries)
        live = new
        trace.append(msgspec.json.encode(entries))
    return trace


_NAMES: list[dict[str, str]] = [
    {},
    {"u": "x", "u1": "x1", "v": "y", "10.0.0.1": "10.0.0.3", "10.0.0.10": "10.0.0.30"},
    {"u": "v", "v": "u", "10.0.0.1": "10.0.0.3", "10.0.0.10": "10.0.0.2"},
    {"v": "<v>"},
    {"u": "0", "v": "<v>"},
    {"one": "two", "two": "one"},
    {"one": "two"},
    {"one": ""},
]
"""Other names for items and managers: writes that only differ in them are alike, or nearly so."""


@settings(max_examples=100)
@given(
    st.one_of(
        st.tuples(st.just("ResourceClaim"), _steps(_CLAIMS)),
        st.tuples(st.just("Pod"), _steps(_PODS)),
    )
)
def test_like_writes_end_as_each_would_by_itself(writes: tuple[str, list[Step]]) -> None:
    name, steps = writes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transitions, "compute_create_shares", _unknown)
        patch.setattr(transitions, "compute_change_shares", _unknown)
        plain = [_written(name, steps, names=names, interner=parts.forgetful()) for names in _NAMES]
    interner = parts.Interner()
    for _ in range(2):
        assert [_written(name, steps, names=names, interner=interner) for names in _NAMES] == plain


def _unknown(*_args: Any, **_kwargs: Any) -> None:
    """Sends every write the long way."""
