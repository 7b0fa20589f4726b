"""Which writes are alike, and that a remembered outcome has the identities of the write at hand."""

from typing import Any

import pytest

from drachma.server.ownership import comparison, managers, precedents
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


def _case(*uids: str, entries: tuple[dict[str, Any], ...] = ()) -> precedents.Case | None:
    compared = comparison.compare({}, _claim(*uids), schema=KIND.schema)
    return precedents.case(entries, compared, manager=WRITER, kind=KIND)


def _case_of_new(*uids: str, **metadata: Any) -> precedents.Case | None:
    return precedents.case_of_new(_claim(*uids, **metadata), manager=WRITER, kind=KIND)


@pytest.mark.parametrize("case", [pytest.param(_case, id="write"), pytest.param(_case_of_new, id="create")])
@pytest.mark.parametrize(
    ("uids", "others", "is_alike"),
    [
        pytest.param(["1"], ["2"], True, id="one"),
        pytest.param(["1", "2"], ["3", "4"], True, id="two"),
        pytest.param(["1", "2"], ["4", "3"], False, id="in-another-order"),
        pytest.param(["1", "1"], ["1", "2"], False, id="the-same-twice"),
        pytest.param(["a", "a1"], ["b", "a"], False, id="one-begins-with-the-other"),
        pytest.param(["1"], [], False, id="none"),
    ],
)
def test_identities_count_by_their_order(case: Any, uids: list[str], others: list[str], is_alike: bool) -> None:
    first, second = case(*uids), case(*others)
    assert (first.likeness == second.likeness) is is_alike


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(_case("1", "<"), id="an-identity-with-escapes"),
        pytest.param(_case_of_new("1", "<"), id="a-new-one-with-escapes"),
        pytest.param(_case_of_new(""), id="an-owner-without-a-uid"),
        pytest.param(_case("1", "2", "3", "4", "5"), id="many-identities"),
        pytest.param(_case_of_new("1", "2", "3", "4", "5"), id="many-owners"),
        pytest.param(_case("1", entries=(_entry("resource.k8s.io/v1beta1"),)), id="an-owner-in-another-version"),
        pytest.param(_case("1", entries=(_entry(fieldsV1={'f:"k:{': {}}),)), id="a-name-like-an-identity"),
        pytest.param(_case_of_new("1", labels={'"k:{': ""}), id="a-label-like-an-identity"),
        pytest.param(_case_of_new(labels={"x" * 5000: ""}), id="a-large-object"),
    ],
)
def test_unlike_all_others(case: precedents.Case | None) -> None:
    assert case is None


def test_an_outcome_is_found_with_other_identities() -> None:
    first, second = _case("1", "2"), _case("8", "9")
    assert first is not None
    assert second is not None
    fields: dict[str, Any] = {"f:x": {'k:{"uid":"1"}': {".": {}}, 'k:{"uid":"2"}': {}}, "f:y": {'k:{"ip":"1"}': {}}}
    kept = precedents.Share(0, None, is_written=False)
    precedents.settle(first, [kept, precedents.Share(None, fields, is_written=True)])
    want: dict[str, Any] = {"f:x": {'k:{"uid":"8"}': {".": {}}, 'k:{"uid":"9"}': {}}, "f:y": {'k:{"ip":"1"}': {}}}
    assert precedents.find(second) == [kept, precedents.Share(None, want, is_written=True)]


def test_the_table_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precedents, "_REMEMBERED", 3)
    monkeypatch.setattr(precedents, "_known", {})
    for number in range(10):
        case = _case_of_new(labels={f"x{number}": ""})
        assert case is not None
        precedents.settle(case, [])
        assert precedents.find(case) == []
        assert len(precedents._known) <= 3
