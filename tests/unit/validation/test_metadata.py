"""Rules for metadata, on the kind with the fewest rules of its own."""

from typing import Any

import pytest

from drachma.api import meta
from drachma.validation import metadata
from tests.unit.validation.builders import RULE, Document, changed, create, setting, stored, update

OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1"}
NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param({"labels": {"a b": "c"}}, ['metadata.labels: Invalid value: "a b": ' + NAME_PART], id="label-key"),
        pytest.param(
            {"labels": {"a": "b c"}},
            [
                (
                    'metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of '
                    "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
                    "character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
                    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                )
            ],
            id="label-value",
        ),
        pytest.param(
            {"annotations": {"A b": ""}}, ['metadata.annotations: Invalid value: "A b": ' + NAME_PART], id="annotation"
        ),
        pytest.param({"annotations": {"Upper/Case": ""}}, [], id="annotation-in-capitals"),
        pytest.param(
            {"annotations": {"a": "x" * 262144}},
            ["metadata.annotations: Too long: may not be more than 262144 bytes"],
            id="annotations-too-long",
        ),
        pytest.param(
            {"annotations": {"ab": "\N{EURO SIGN}" * 87381}},
            ["metadata.annotations: Too long: may not be more than 262144 bytes"],
            id="annotations-too-long-in-bytes",
        ),
        pytest.param({"annotations": {"a": "\N{EURO SIGN}" * 87381}}, [], id="annotations-that-just-fit"),
        pytest.param(
            {"finalizers": ["mine"]},
            [
                (
                    'metadata.finalizers[0]: Invalid value: "mine": '
                    "name is neither a standard finalizer name nor is it fully qualified"
                )
            ],
            id="finalizer-without-domain",
        ),
        pytest.param(
            {"finalizers": ["orphan", "foregroundDeletion"]},
            [
                (
                    'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: '
                    "finalizer orphan and foregroundDeletion cannot be both set"
                )
            ],
            id="conflicting-finalizers",
        ),
        pytest.param(
            {"ownerReferences": [{}]},
            [
                "metadata.ownerReferences[0].apiVersion: Required value: must not be empty",
                "metadata.ownerReferences[0].kind: Required value: must not be empty",
                "metadata.ownerReferences[0].name: Required value: must not be empty",
                "metadata.ownerReferences[0].uid: Required value: must not be empty",
            ],
            id="empty-owner",
        ),
        pytest.param(
            {"ownerReferences": [{**OWNER, "apiVersion": "a/b/c"}]},
            [
                (
                    'metadata.ownerReferences[0].apiVersion: Invalid value: "a/b/c": '
                    "must be <group>/<version> or <version>"
                )
            ],
            id="owner-version",
        ),
        pytest.param(
            {"ownerReferences": [{**OWNER, "kind": "Event"}]},
            [
                (
                    'metadata.ownerReferences[0]: Invalid value: {"apiVersion":"v1","kind":"Event","name":"p",'
                    '"uid":"1"}: '
                    "/v1, Kind=Event is disallowed from being an owner"
                )
            ],
            id="event-as-owner",
        ),
        pytest.param(
            {"ownerReferences": [{**OWNER, "controller": True}, {**OWNER, "name": "q", "controller": True}]},
            [
                (
                    'metadata.ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"Pod","name":"p","uid":"1",'
                    '"controller":true},{"apiVersion":"v1","kind":"Pod","name":"q","uid":"1","controller":true}]: '
                    'Only one reference can have Controller set to true. Found "true" in references for Pod/p and Pod/q'
                )
            ],
            id="two-controllers",
        ),
        pytest.param(
            {"managedFields": [{"manager": "a\tb", "operation": "Guess", "fieldsType": "X"}]},
            [
                'metadata.managedFields[0].operation: Unsupported value: "Guess": supported values: "Apply", "Update"',
                'metadata.managedFields[0].fieldsType: Invalid value: "X": must be `FieldsV1`',
                'metadata.managedFields[0].manager: Invalid value: "a\\tb": invalid character U+0009 (at position 1)',
            ],
            id="managed-fields",
        ),
        pytest.param({"generateName": "a-", "name": "a-xyz"}, [], id="generate-name-may-end-in-a-dash"),
        pytest.param(
            {"generateName": "AB-", "name": "x"},
            [
                (
                    'metadata.generateName: Invalid value: "AB-": a lowercase RFC 1123 subdomain must consist of '
                    "lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
                    "character (e.g. 'example.com', regex used for validation is "
                    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                )
            ],
            id="generate-name",
        ),
        pytest.param(
            {"name": ""}, ["metadata.name: Required value: name or generateName is required"], id="name-required"
        ),
    ],
)
def test_create(fields: Document, want: list[str]) -> None:
    found = create(changed(RULE, lambda document: document["metadata"].update(fields)))
    assert found == want


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(
            {}, {"name": "other"}, ['metadata.name: Invalid value: "other": field is immutable'], id="name-immutable"
        ),
        pytest.param(
            {"uid": "1"}, {"uid": "2"}, ['metadata.uid: Invalid value: "2": field is immutable'], id="uid-immutable"
        ),
        pytest.param({"uid": "1"}, {}, [], id="uid-left-out"),
        pytest.param(
            {},
            {"resourceVersion": ""},
            ['metadata.resourceVersion: Invalid value: "": must be specified for an update'],
            id="resource-version-required",
        ),
        pytest.param(
            {"creationTimestamp": "2001-02-03T04:05:06Z"},
            {"creationTimestamp": "2002-02-03T04:05:06Z"},
            [],
            id="creation-time-is-put-back",
        ),
        pytest.param(
            {},
            {"deletionTimestamp": "2001-02-03T04:05:06Z"},
            ['metadata.deletionTimestamp: Invalid value: "2001-02-03T04:05:06Z": field is immutable'],
            id="deletion-time-cannot-be-set",
        ),
        pytest.param(
            {"deletionTimestamp": "2001-02-03T04:05:06Z", "finalizers": ["a.b/c"]},
            {"finalizers": ["a.b/c", "a.b/d", "a.b/e"]},
            [
                (
                    "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
                    'found new finalizers []string{"a.b/d", "a.b/e"}'
                )
            ],
            id="no-new-finalizers-while-deleted",
        ),
        pytest.param({"generation": 3}, {"generation": 1}, [], id="generation-is-put-back"),
        pytest.param(
            {}, {"labels": {"a b": ""}}, ['metadata.labels: Invalid value: "a b": ' + NAME_PART], id="label-key"
        ),
    ],
)
def test_update(old: Document, new: Document, want: list[str]) -> None:
    def add_metadata(fields: Any) -> Document:
        return changed(stored(RULE), lambda document: document["metadata"].update(fields))

    found = update(add_metadata({**old, **new}), add_metadata(old))
    assert found == want


def test_errors_of_two_rule_sets_are_told_once() -> None:
    new = changed(stored(RULE), setting("metadata.labels", {"a b": ""}))
    assert len(update(new, stored(RULE))) == 1


def test_metadata_that_is_good_for_one_scope_is_not_taken_to_be_good_for_the_other() -> None:
    placed = meta.ObjectMeta(name="a", namespace="b")
    for _ in range(2):
        assert not check(placed, namespaced=True)
        assert check(placed, namespaced=False) == ["metadata.namespace: Forbidden: not allowed on this type"]
    global_one = meta.ObjectMeta(name="a")
    for _ in range(2):
        assert not check(global_one, namespaced=False)
        assert check(global_one, namespaced=True) == ["metadata.namespace: Required value"]


def check(given: meta.ObjectMeta, *, namespaced: bool) -> list[str]:
    return [str(error) for error in metadata.check(given, namespaced=namespaced, name_rule=metadata.path_segment)]
