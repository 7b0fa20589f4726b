"""Rules for classes of storage."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.validation import fielderror, formats, metadata, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.validation.podspec import choices

DEFAULT_ANNOTATIONS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
"""What marks the class of claims that name none."""

_POLICIES: Final = ("Delete", "Retain")
_BINDING: Final = ("Immediate", "WaitForFirstConsumer")
_PARAMETERS: Final = 512
_PARAMETER_BYTES: Final = 256 * 1024


def check(content: Mapping[str, Any]) -> Errors:
    """A class by itself."""
    provisioner = content.get("provisioner", "")
    if not provisioner:
        yield fielderror.required(Path("provisioner"))
    else:
        yield from choices.qualified_name(provisioner.lower(), Path("provisioner"))
    parameters = content.get("parameters") or {}
    if len(parameters) > _PARAMETERS:
        yield fielderror.too_long(Path("parameters"), _PARAMETERS)
    elif sum(len(key) + len(value) for key, value in parameters.items()) > _PARAMETER_BYTES:
        yield fielderror.too_long(Path("parameters"), _PARAMETER_BYTES)
    for key in parameters:
        if not key:
            yield fielderror.invalid(Path("parameters"), key, "field can not be empty.")
    policy, mode = content.get("reclaimPolicy"), content.get("volumeBindingMode")
    if policy and policy not in _POLICIES:
        yield fielderror.not_supported(Path("reclaimPolicy"), rendering.named(policy), _POLICIES)
    if mode is None:
        yield fielderror.required(Path("volumeBindingMode"))
    elif mode not in _BINDING:
        yield fielderror.not_supported(Path("volumeBindingMode"), rendering.named(mode), _BINDING)
    yield from _topologies(content.get("allowedTopologies") or ())


def check_update(content: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """What volumes of a class are made of is decided once."""
    if (content.get("parameters") or {}) != (old.get("parameters") or {}):
        yield fielderror.forbidden(Path("parameters"), "updates to parameters are forbidden.")
    for field in ("provisioner", "reclaimPolicy"):
        if content.get(field) != old.get(field):
            yield fielderror.forbidden(Path(field), f"updates to {field} are forbidden.")
    if content.get("volumeBindingMode") != old.get("volumeBindingMode"):
        shown = rendering.named(content.get("volumeBindingMode") or "")
        yield fielderror.invalid(Path("volumeBindingMode"), shown, metadata.IMMUTABLE)


def _topologies(terms: Sequence[Mapping[str, Any]]) -> Errors:
    """Where volumes may be made: each place once, none of them everywhere."""
    # As upstream, for whom a term without expressions is one that has been there already.
    seen: list[dict[str, set[str]]] = [{}]
    for position, term in enumerate(terms):
        at = Path("allowedTopologies").item(position).child("matchLabelExpressions")
        places: dict[str, set[str]] = {}
        for index, expression in enumerate(term.get("matchLabelExpressions") or ()):
            yield from _values(expression.get("values") or (), at.item(index).child("values"))
            key = expression.get("key", "")
            yield from formats.label_key(key, at.item(index).child("key"))
            if key in places:
                yield fielderror.duplicate(at.item(index).child("key"), key)
            places[key] = set(expression.get("values") or ())
        if places in seen:
            yield fielderror.duplicate(at, "")
        seen.append(places)


def _values(values: Sequence[str], at: Path) -> Errors:
    if not values:
        yield fielderror.required(at)
    for position, value in enumerate(values):
        if value in values[:position]:
            yield fielderror.duplicate(at.item(position), value)
