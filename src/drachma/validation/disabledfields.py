"""Fields of disabled features, which are dropped from what clients send unless the stored object uses them.

A feature in use stays usable in an object, so that an update by someone who only changes something else loses nothing.
``disabled.fields`` lists the fields as paths of attributes, which lead through the items of lists and the values of
maps. A field is in use if it is not empty; one with a question mark also if it is there and empty.
"""

import importlib.resources
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import structs

from drachma.api import deviceclass, resourceclaim, resourceclaimtemplate, resourceslice, struct
from drachma.api import gates as feature
from drachma.api.gates import Gate, Gates

_StructT = TypeVar("_StructT", bound=struct.Struct)


class _Feature(NamedTuple):
    """Gates that must all be enabled, and the fields of the feature."""

    gates: tuple[Gate, ...]
    fields: tuple[str, ...]


def _read_features(text: str) -> Mapping[str, Sequence[_Feature]]:
    """Return the features of types by the names of the types."""
    features: dict[str, list[_Feature]] = {}
    own: list[_Feature] = []
    for line in text.splitlines():
        if line.startswith(" "):
            gates, _, fields = line.partition(":")
            own.append(_Feature(tuple(map(Gate, gates.split())), tuple(fields.split())))
        elif not line.startswith("#"):
            own = features[line] = []
    return features


_FEATURES: Final = _read_features(importlib.resources.files(__package__).joinpath("disabled.fields").read_text())
_BY_SPEC: Final[Mapping[type[struct.Struct], Sequence[_Feature]]] = {
    each: _FEATURES[each.__name__]
    for each in (deviceclass.DeviceClassSpec, resourceclaim.ResourceClaimSpec, resourceslice.ResourceSliceSpec)
}


def drop_from_claim_status(
    status: resourceclaim.ResourceClaimStatus, *, old: resourceclaim.ResourceClaim, gates: Gates
) -> resourceclaim.ResourceClaimStatus:
    """Return the status of a claim without fields of disabled features that neither its spec nor its status use."""
    disabled = [each for each in _FEATURES["ResourceClaimStatus"] if not all(map(gates.on, each.gates))]
    if not disabled:
        return status
    in_use = {each.gates for each in _FEATURES["ResourceClaimSpec"] if _uses(old.spec, each)}
    return _drop(status, [each for each in disabled if each.gates not in in_use], old=old.status, gates=gates)


def drop(spec: _StructT, *, old: _StructT | None, gates: Gates) -> _StructT:
    """Return the spec of an object without fields of disabled features that the old spec does not use."""
    if isinstance(spec, resourceclaimtemplate.ResourceClaimTemplateSpec):
        before = old.spec if isinstance(old, resourceclaimtemplate.ResourceClaimTemplateSpec) else None
        return structs.replace(spec, spec=drop(spec.spec, old=before, gates=gates))
    return _drop(spec, _BY_SPEC.get(type(spec), ()), old=old, gates=gates)


def _drop(value: _StructT, features: Sequence[_Feature], *, old: _StructT | None, gates: Gates) -> _StructT:
    if gates.enabled >= feature.ALL.enabled:
        return value
    for each in features:
        if not all(map(gates.on, each.gates)) and not _uses(old, each):
            for field in each.fields:
                value = _without(value, field.removesuffix("?").split("."))
    return value


def _uses(owner: struct.Struct | None, each: _Feature) -> bool:
    if owner is None:
        return False
    return any(
        _is_used(owner, field.removesuffix("?").split("."), counts_empty=field.endswith("?")) for field in each.fields
    )


def _is_used(owner: Any, names: Sequence[str], *, counts_empty: bool) -> bool:
    """Return True if a field of a value, or of its parts, is in use."""
    if owner is None:
        return False
    if not isinstance(owner, struct.Struct) and isinstance(owner, tuple | Mapping):
        parts = owner.values() if isinstance(owner, Mapping) else owner
        return any(_is_used(part, names, counts_empty=counts_empty) for part in parts)
    value = getattr(owner, names[0])
    if len(names) > 1:
        return _is_used(value, names[1:], counts_empty=counts_empty)
    if counts_empty:
        return not struct.is_absent(value)
    return bool(value) if isinstance(value, tuple | Mapping) else value is not None


def _without(owner: Any, names: Sequence[str]) -> Any:
    """Return a value, or its parts, without a field; the same object if there is nothing to drop."""
    if not owner:
        return owner
    if isinstance(owner, tuple):
        parts = tuple(_without(part, names) for part in owner)
        return owner if all(part is before for part, before in zip(parts, owner, strict=True)) else parts
    if isinstance(owner, Mapping):
        values = {key: _without(value, names) for key, value in owner.items()}
        return owner if all(value is owner[key] for key, value in values.items()) else values
    name, value = names[0], getattr(owner, names[0])
    fields = dict(zip(owner.__struct_fields__, owner.__struct_defaults__, strict=True))
    changed = _without(value, names[1:]) if len(names) > 1 else fields[name]
    return owner if changed is value else structs.replace(owner, **{name: changed})
