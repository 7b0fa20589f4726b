"""Rules for claims of volumes."""

from collections.abc import Mapping
from typing import Any, Final

from drachma.validation import fielderror, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, Path
from drachma.validation.podspec import selectors
from drachma.values import names, quantity

ACCESS_MODES: Final = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
"""In the order in which upstream's messages list what is supported."""

_SUPPORTED: Final = tuple(sorted(ACCESS_MODES))
_MODES: Final = ("Block", "Filesystem")
_CHANGEABLE: Final = ("resources", "volumeAttributesClassName", "volumeName", "storageClassName")
_IMMUTABLE: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


def check(spec: Mapping[str, Any], at: Path = SPEC) -> Errors:
    """The spec of a claim, or of a template of one."""
    modes = spec.get("accessModes") or ()
    if not modes:
        yield fielderror.required(at.child("accessModes"), "at least 1 access mode is required")
    yield from selectors.check(spec.get("selector"), at.child("selector"))
    yield from check_access_modes(modes, at.child("accessModes"))
    requests, place = ((spec.get("resources") or {}).get("requests") or {}), at.child("resources")
    if "storage" not in requests:
        yield fielderror.required(place.key("storage"))
    elif not _is_positive(requests["storage"]):
        detail = "must be greater than zero"
        yield fielderror.invalid(place.child("requests").key("storage"), str(requests["storage"]), detail)
    for field in ("storageClassName", "volumeAttributesClassName"):
        name = spec.get(field)
        if name:
            yield from fielderror.problems(at.child(field), name, names.dns1123_subdomain(name))
    mode = spec.get("volumeMode")
    if mode is not None and mode not in _MODES:
        yield fielderror.not_supported(at.child("volumeMode"), rendering.named(mode), _MODES)


def check_update(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """A claim is decided once, but for its size and what the controller says of it."""
    changed = [name for name in sorted({*spec, *old}) if name not in _CHANGEABLE and spec.get(name) != old.get(name)]
    renamed = any(old.get(name) and spec.get(name) != old.get(name) for name in ("volumeName", "storageClassName"))
    if changed or renamed:
        yield fielderror.forbidden(SPEC, _IMMUTABLE)


def check_access_modes(modes: Any, at: Any) -> Errors:
    """How a volume may be used."""
    for mode in modes:
        if mode not in ACCESS_MODES:
            yield fielderror.not_supported(at, rendering.named(mode), _SUPPORTED)
    if "ReadWriteOncePod" in modes and len(set(modes)) > 1:
        detail = "may not use ReadWriteOncePod with other access modes"
        yield fielderror.forbidden(at, detail)


def _is_positive(text: Any) -> bool:
    return quantity.Quantity.parse(str(text)) > quantity.Quantity.parse("0")
