"""Any object of any kind, generated from the kinds' own types, survives every way of writing and reading it."""

import functools
import json
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from msgspec import inspect

from drachma.api import codec, conversion, manifest, meta, scheme
from drachma.values import quantity

QUANTITIES = st.sampled_from(["0", "1", "1.5", "0.5Gi", "1e3", "12e-3", "100m", "-4Ki", "1000000"]).map(
    quantity.Quantity.parse
)
TIMES = st.datetimes(timezones=st.just(__import__("datetime").UTC)).map(lambda time: time.replace(microsecond=0))
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=5)
OPAQUE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)


@functools.cache
def values_of(model: Any) -> st.SearchStrategy[Any]:
    return _values(inspect.type_info(model))


def _values(info: inspect.Type) -> st.SearchStrategy[Any]:
    match info:
        case inspect.UnionType():
            return st.none() | _values(next(t for t in info.types if not isinstance(t, inspect.NoneType)))
        case inspect.StructType():
            fields = {field.name: _values(field.type) for field in info.fields}
            return st.fixed_dictionaries({}, optional=fields).map(
                lambda given: info.cls(**{name: value for name, value in given.items() if value is not None})
            )
        case inspect.VarTupleType():
            return st.lists(_values(info.item_type), max_size=2).map(tuple)
        case inspect.DictType():
            return st.dictionaries(TEXTS, _values(info.value_type), max_size=2)
        case inspect.CustomType():
            return QUANTITIES
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType():
            return st.integers(info.ge, info.le)
        case inspect.DateTimeType():
            return TIMES
        case inspect.AnyType():
            return OPAQUE
        case _:
            return TEXTS


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.name) for kind in scheme.KINDS])
@hypothesis.given(data=st.data())
@hypothesis.settings(max_examples=25, suppress_health_check=list(hypothesis.HealthCheck))
def test_round_trips(kind: scheme.Kind, data: st.DataObject) -> None:
    stored: meta.Object = data.draw(values_of(kind.model))
    document = codec.encode(stored)
    assert codec.decode(document) == stored
    assert codec.decode_json(codec.encode_json(stored)) == stored
    assert json.loads(codec.encode_json(stored)) == document
    assert codec.unknown_fields(document) == ()
    (read,) = manifest.read(manifest.write_yaml([document]))
    assert codec.encode(codec.decode(read.content)) == document


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.name) for kind in scheme.KINDS if kind.complete])
@hypothesis.given(data=st.data())
@hypothesis.settings(max_examples=25, suppress_health_check=list(hypothesis.HealthCheck))
def test_versions_settle_after_one_conversion(kind: scheme.Kind, data: st.DataObject) -> None:
    """What v1beta1 cannot say is normalised by the first conversion; every later one changes nothing."""
    stored: meta.Object = data.draw(values_of(kind.model))
    for api_version in kind.api_versions:
        settled = conversion.to_memory(conversion.to_wire(stored, api_version))
        assert conversion.to_memory(conversion.to_wire(settled, api_version)) == settled


ALPHA = "resource.k8s.io/v1alpha3"


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, id=kind.name) for kind in scheme.KINDS if ALPHA in kind.api_versions[1:]]
)
@hypothesis.given(data=st.data())
@hypothesis.settings(max_examples=25, suppress_health_check=list(hypothesis.HealthCheck))
def test_what_v1alpha3_says_survives_v1(kind: scheme.Kind, data: st.DataObject) -> None:
    older = codec.encode(data.draw(values_of(kind.model)), api_version=ALPHA)
    settled = codec.encode(codec.decode(older), api_version=ALPHA)
    newest = codec.encode(codec.decode(settled))
    assert codec.encode(codec.decode(newest), api_version=ALPHA) == settled
    for device in (settled.get("spec") or {}).get("devices") or () if kind.name == "ResourceSlice" else ():
        assert device.keys() <= {"name", "basic"}
        assert all(isinstance(amount, str) for amount in device["basic"].get("capacity", {}).values())
