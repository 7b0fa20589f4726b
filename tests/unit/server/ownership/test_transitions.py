"""Which writes are alike, and that what was worked out for one is told with the identities of another."""

from typing import Any

import pytest

from drachma.server import parts
from drachma.server.ownership import comparison, managers, transitions
from drachma.server.ownership.transitions import Share
from tests.unit.server import served

KIND = managers.Kind.of(
    served.resource("resourceclaims", group="resource.k8s.io"), "v1", convert=lambda document, _version: document
)
WRITER = managers.Manager("m", managers.UPDATE, KIND.api_version, "")


def _entry(api_version: str = KIND.api_version, **fields: Any) -> dict[str, Any]:
    return {"manager": "m", "operation": "Update", "apiVersion": api_version, "fieldsType": "FieldsV1", **fields}


def _claim(*uids: str, **metadata: Any) -> dict[str, Any]:
    references = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid} for uid in uids]
    return {"kind": "ResourceClaim", "metadata": {"name": "c", "ownerReferences": references, **metadata}}


def _of_change(interner: parts.Interner, *uids: str, entries: tuple[dict[str, Any], ...] = (), **metadata: Any) -> Any:
    compared = comparison.compare({}, _claim(*uids, **metadata), schema=KIND.schema)
    changes = [transitions.Change(compared, WRITER, KIND.resets)]
    return transitions.compute_change_shares(entries, changes, api_version=KIND.api_version, interner=interner)


def _of_new(interner: parts.Interner, *uids: str, **metadata: Any) -> Any:
    return transitions.compute_create_shares(_claim(*uids, **metadata), kind=KIND, interner=interner)


@pytest.mark.parametrize("ask", [pytest.param(_of_change, id="change"), pytest.param(_of_new, id="create")])
@pytest.mark.parametrize(
    ("uids", "others", "is_alike"),
    [
        pytest.param(["1"], ["2"], True, id="one"),
        pytest.param(["1", "2"], ["3", "4"], True, id="two"),
        pytest.param(["a", "a1"], ["b", "b1"], True, id="one-begins-with-the-other"),
        pytest.param(["1", "2"], ["4", "3"], False, id="in-another-order"),
        pytest.param(["1", "1"], ["1", "2"], False, id="the-same-twice"),
        pytest.param(["a", "a1"], ["b", "a"], False, id="one-that-begins-with-the-other-comes-first"),
        pytest.param(["1"], [], False, id="none"),
    ],
)
def test_identities_count_by_their_order(ask: Any, uids: list[str], others: list[str], is_alike: bool) -> None:
    interner = parts.Interner()
    for each in (uids, others):
        (share,) = ask(interner, *each)
        want: dict[str, Any] = {f'k:{{"uid":"{uid}"}}': {} for uid in sorted(set(each))}
        assert share.change == 0
        owned = share.fields["f:metadata"]["f:ownerReferences"]
        assert list(owned.items()) == [(".", {}), *want.items()] if want else owned == {}
    assert len(interner) == (1 if is_alike else 2)


@pytest.mark.parametrize(
    ("ask", "uids", "facts"),
    [
        pytest.param(_of_change, ("1", "<"), {}, id="an-identity-with-escapes"),
        pytest.param(_of_new, ("1", "<"), {}, id="a-new-one-with-escapes"),
        pytest.param(_of_new, ("",), {}, id="an-owner-without-a-uid"),
        pytest.param(_of_change, ("1", "2", "3", "4", "5"), {}, id="many-identities"),
        pytest.param(_of_new, ("1", "2", "3", "4", "5"), {}, id="many-owners"),
        pytest.param(
            _of_change, ("1",), {"entries": (_entry("resource.k8s.io/v1beta1"),)}, id="an-owner-in-another-version"
        ),
        pytest.param(_of_change, ("1",), {"entries": (_entry(fieldsV1={'f:"k:{': {}}),)}, id="a-name-like-an-identity"),
        pytest.param(_of_new, ("1",), {"labels": {'"k:{': ""}}, id="a-label-like-an-identity"),
        pytest.param(_of_new, ("1",), {"labels": {"~0": ""}}, id="a-label-like-a-rank"),
        pytest.param(
            _of_change,
            (),
            {"entries": tuple(_entry(manager=f"m{number}", fieldsV1={"f:x": {}}) for number in range(10))},
            id="many-owners-of-fields",
        ),
    ],
)
def test_unlike_all_others(ask: Any, uids: tuple[str, ...], facts: dict[str, Any]) -> None:
    assert ask(parts.Interner(), *uids, **facts) is None


def test_who_changes_nothing_that_another_owns_leaves_its_entry_alone() -> None:
    entry = _entry(manager="other", fieldsV1={"f:spec": {"f:devices": {}}})
    shares = _of_change(parts.Interner(), entries=(entry,), labels={"a": "b"})
    fields: dict[str, Any] = {"f:metadata": {"f:labels": {".": {}, "f:a": {}}, "f:ownerReferences": {}}}
    assert shares == [Share(0, None), Share(None, fields, 0)]


def test_values_do_not_tell_new_objects_apart() -> None:
    interner = parts.Interner()
    first = _of_new(interner, labels={"a": "1"}, annotations={"b": "1"}, generateName="x-")
    assert _of_new(interner, labels={"a": "2"}, annotations={"b": ""}, generateName="y-") == first
    assert len(interner) == 1
    assert _of_new(interner, labels={"a": "2", "c": "1"}, generateName="y-") != first
