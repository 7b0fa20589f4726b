"""Objects are decoded without managedFields, in every version of a kind."""

from typing import Any

import msgspec
import pytest
from msgspec import structs

from drachma.api import codec, hooks, meta, scheme
from drachma.client import target, wire

ENTRY = {"manager": "m", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:x": {}}}}
METADATA = {
    "name": "n",
    "namespace": "ns",
    "uid": "u",
    "resourceVersion": "7",
    "generation": 2,
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "labels": {"a": "b"},
    "annotations": {},
    "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "x", "controller": True}],
    "finalizers": ["f"],
}

FORMS = [
    pytest.param(kind.shape(version), id=f"{version}-{kind.name}")
    for kind in scheme.KINDS
    for version in kind.api_versions
]


def document(**metadata: Any) -> bytes:
    return msgspec.json.encode({"metadata": {**METADATA, **metadata}})


@pytest.mark.parametrize("model", [*FORMS, pytest.param(meta.Object, id="metadata-only")])
def test_all_but_managed_fields(model: type[meta.Object]) -> None:
    form = wire.ReadForm(model)
    decoded = msgspec.json.Decoder(form.decoded, dec_hook=hooks.decode).decode(document(managedFields=[ENTRY]))
    want = msgspec.json.Decoder(model, dec_hook=hooks.decode).decode(document())
    assert form.restore(decoded) == want
    assert {field.name for field in structs.fields(form.decoded)} == {field.name for field in structs.fields(model)}


def test_what_is_absent_stays_absent() -> None:
    """An explicit empty map is not the same text as none, and both go out as they came in."""
    kind = target.of(scheme.find("v1", "Pod").model)
    decoded = wire.reader(kind, "v1").object(document(managedFields=[ENTRY]))
    encoded = codec.encode(decoded)
    assert encoded["metadata"] == METADATA


def test_nulls_are_read_as_absence() -> None:
    """The way that looks at documents value by value leaves managedFields out, too."""
    kind = target.of(scheme.find("v1", "Pod").model)
    decoded = wire.reader(kind, "v1").object(document(managedFields=[ENTRY], selfLink=None))
    assert decoded.metadata.managed_fields == ()
    assert codec.encode(decoded)["metadata"] == METADATA
