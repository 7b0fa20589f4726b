"""The short ways of a write come out where the long ones do: canonical form, fit of types and fields."""

from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from drachma.api import codec, defaults, resourceclaim, resourceslice, types
from drachma.api.struct import Struct, canonical_zero, is_absent
from drachma.server.schema import decodeerrors, unknownfields
from drachma.values import quantity
from tests.property.test_codec import values_of
from tests.unit.server import served

_WRITTEN = {(resourceslice.DeviceCapacity, "value"), (resourceslice.Counter, "value")}
_ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, 5, 2**40, 1.5, True, "x", "", "1Gi", "2025-01-01T00:00:00Z", "AA==", [], {}, [None]]
)
_KINDS = st.sampled_from(
    [("v1", "Pod"), ("v1", "Secret"), ("v1", "Node"), ("batch/v1", "Job"), ("resource.k8s.io/v1", "ResourceSlice")]
)


@settings(max_examples=80)
@given(made=values_of(resourceclaim.ResourceClaim) | values_of(resourceslice.ResourceSlice))
def test_the_canonical_form_looks_at_every_value(made: Any) -> None:
    canonical = defaults.canonical(made)
    assert codec.encode(canonical) == codec.encode(_canonical(made))
    assert defaults.canonical(canonical) is canonical


def _canonical(value: Any) -> Any:
    """The canonical form by the values alone."""
    match value:
        case Struct():
            fields = {}
            for field in structs.fields(value):
                part = getattr(value, field.name)
                has_zero = field.default is not None and is_absent(field.default)
                fields[field.name] = canonical_zero(field.default) if has_zero and not part else _canonical(part)
                if fields[field.name] is None and (type(value), field.name) in _WRITTEN:
                    fields[field.name] = quantity.Quantity.parse("0")
            is_same = all(fields[name] is getattr(value, name) for name in fields)
            return value if is_same else structs.replace(value, **fields)
        case quantity.Quantity():
            return value if value.text == str(value) else quantity.Quantity.parse(str(value))
        case tuple() if any(_canonical(item) is not item for item in value):
            return tuple(map(_canonical, value))
        case dict() if any(isinstance(item, Struct | quantity.Quantity) for item in value.values()):
            return {key: _canonical(item) for key, item in value.items()}
        case _:
            return value


@settings(max_examples=120)
@given(data=st.data())
def test_what_fits_needs_no_words(data: st.DataObject) -> None:
    kind = served.schema(*data.draw(_KINDS))
    document = data.draw(_documents(kind))
    assert decodeerrors.explain(document, kind) == decodeerrors.explain_slowly(document, kind)


@settings(max_examples=120)
@given(data=st.data())
def test_every_unknown_field_is_found(data: st.DataObject) -> None:
    kind = served.schema(*data.draw(_KINDS))
    document = data.draw(_documents(kind))
    want = [f'unknown field "{path}"' for path in _unknown(document, kind, "")]
    assert unknownfields.unknown_fields(document, kind) == want


def _unknown(value: Any, kind: Any, path: str) -> Iterator[str]:
    match kind, value:
        case types.Object(), dict():
            for name, part in value.items():
                at = f"{path}.{name}" if path else name
                yield from _unknown(part, kind.fields[name].type, at) if name in kind.fields else [at]
        case types.ListOf(), list():
            for index, part in enumerate(value):
                yield from _unknown(part, kind.element, f"{path}[{index}]")
        case types.MapOf(), dict():
            for name, part in value.items():
                yield from _unknown(part, kind.element, f"{path}.{name}")


def _documents(kind: types.Object, depth: int = 4) -> st.SearchStrategy[Any]:
    names = st.lists(st.sampled_from([*sorted(kind.fields), "bogus"]), max_size=3, unique=True)
    return names.flatmap(
        lambda chosen: st.fixed_dictionaries(
            {name: _values(kind.fields[name].type, depth) if name in kind.fields else _ODD for name in chosen}
        )
    )


def _values(kind: Any, depth: int) -> st.SearchStrategy[Any]:
    match kind:
        case types.Object() if depth:
            return _ODD | _documents(kind, depth - 1)
        case types.ListOf() if depth:
            return _ODD | st.lists(_values(kind.element, depth - 1), max_size=2)
        case types.MapOf() if depth:
            return _ODD | st.dictionaries(st.sampled_from("ab"), _values(kind.element, depth - 1), max_size=2)
        case _:
            return _ODD
