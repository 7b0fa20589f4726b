"""Rules for what storage drivers say of themselves: drivers, their nodes, capacities and attachments."""

from collections.abc import Mapping
from typing import Any, Final

from drachma.validation import fielderror, metadata, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import METADATA, SPEC, Path
from drachma.validation.podspec import selectors
from drachma.values import names, quantity

_DRIVER_NAME: Final = 63
_NODE_ID: Final = 256
_GROUP_POLICIES: Final = ("File", "None", "ReadWriteOnceWithFSType")
_LIFECYCLES: Final = ("Ephemeral", "Persistent")
_SHORTEST_TOKEN: Final = 600
_LONGEST_TOKEN: Final = 2**32


def check_node(spec: Mapping[str, Any]) -> Errors:
    """The drivers of a node."""
    seen: set[str] = set()
    for position, driver in enumerate(spec.get("drivers") or ()):
        at, name = SPEC.child("drivers").item(position), driver.get("name", "")
        yield from _driver_name(name, at.child("name"))
        identity = driver.get("nodeID", "")
        if not identity:
            yield fielderror.required(at.child("nodeID"))
        elif len(identity) > _NODE_ID:
            yield fielderror.invalid(at.child("nodeID"), identity, f"must be {_NODE_ID} characters or less")
        count = (driver.get("allocatable") or {}).get("count")
        if count is not None and count < 0:
            yield fielderror.invalid(at.child("allocatable", "count"), count, metadata.MUST_NOT_BE_NEGATIVE)
        if name in seen:
            yield fielderror.duplicate(at.child("name"), name)
        seen.add(name)
        keys: set[str] = set()
        for key in driver.get("topologyKeys") or ():
            place = at.child("topologyKeys")
            if not key:
                yield fielderror.required(place, "")
            elif key in keys:
                yield fielderror.duplicate(place, key)
            keys.add(key)
            yield from fielderror.problems(place, key, names.qualified_name(key))


def check_node_update(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """What a driver said of a node stays, but for how many volumes it takes."""
    before = {driver.get("name"): driver for driver in old.get("drivers") or ()}
    for position, driver in enumerate(spec.get("drivers") or ()):
        was = before.get(driver.get("name"))
        fixed = ("nodeID", "topologyKeys")
        if was is not None and any(was.get(field) != driver.get(field) for field in fixed):
            at = SPEC.child("drivers").item(position)
            yield fielderror.invalid(at, rendering.wire(driver), metadata.IMMUTABLE)


def check_driver(name: str, spec: Mapping[str, Any]) -> Errors:
    """A driver."""
    yield from _driver_name(name, METADATA.child("name"))
    policy = spec.get("fsGroupPolicy")
    if policy is not None and policy not in _GROUP_POLICIES:
        at = SPEC.child("fsGroupPolicy")
        yield fielderror.not_supported(at, rendering.named(policy), ("File", "None", "ReadWriteOnceWithFSType"))
    for mode in spec.get("volumeLifecycleModes") or ():
        if mode not in _LIFECYCLES:
            at = SPEC.child("volumeLifecycleModes")
            yield fielderror.not_supported(at, rendering.named(mode), ("Persistent", "Ephemeral"))
    audiences: set[str] = set()
    for position, request in enumerate(spec.get("tokenRequests") or ()):
        at, audience = SPEC.child("tokenRequests").item(position), request.get("audience", "")
        if audience in audiences:
            yield fielderror.duplicate(at.child("audience"), audience)
        audiences.add(audience)
        seconds = request.get("expirationSeconds")
        if seconds is not None and seconds < _SHORTEST_TOKEN:
            detail = "may not specify a duration less than 10 minutes"
            yield fielderror.invalid(at.child("expirationSeconds"), seconds, detail)
        if seconds is not None and seconds > _LONGEST_TOKEN:
            detail = "may not specify a duration larger than 2^32 seconds"
            yield fielderror.invalid(at.child("expirationSeconds"), seconds, detail)


def check_driver_update(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """What a driver is, is decided once."""
    for field in ("attachRequired", "volumeLifecycleModes"):
        yield from metadata.unchanged(spec.get(field), old.get(field), SPEC.child(field))


def check_capacity(content: Mapping[str, Any]) -> Errors:
    """How much storage there is."""
    yield from selectors.check(content.get("nodeTopology"), Path("nodeTopology"))
    name = content.get("storageClassName", "")
    yield from fielderror.problems(Path("storageClassName"), name, names.dns1123_subdomain(name))
    for field in ("capacity", "maximumVolumeSize"):
        amount = content.get(field)
        if amount is not None and quantity.Quantity.parse(str(amount)) < quantity.Quantity.parse("0"):
            yield fielderror.invalid(Path(field), str(amount), metadata.MUST_NOT_BE_NEGATIVE)


def check_capacity_update(content: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """Of what and where, is decided once."""
    for field in ("nodeTopology", "storageClassName"):
        yield from metadata.unchanged(content.get(field), old.get(field), Path(field))


def check_attachment(spec: Mapping[str, Any]) -> Errors:
    """What is attached to which node by whom."""
    attacher = spec.get("attacher", "")
    yield from _driver_name(attacher, SPEC.child("attacher"))
    source, at = spec.get("source") or {}, SPEC.child("source")
    inline, name = source.get("inlineVolumeSpec"), source.get("persistentVolumeName")
    if inline is None and name is None:
        yield fielderror.required(at, "must specify exactly one of inlineVolumeSpec and persistentVolumeName")
    if inline is not None and name is not None:
        yield fielderror.forbidden(at, "must specify exactly one of inlineVolumeSpec and persistentVolumeName")
    if name is not None:
        yield from fielderror.problems(at.child("persistentVolumeName"), name, names.dns1123_subdomain(name))
    node = spec.get("nodeName", "")
    yield from fielderror.problems(SPEC.child("nodeName"), node, names.dns1123_subdomain(node))


def check_attachment_update(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """An attachment is decided once."""
    if spec != old:
        yield fielderror.invalid(SPEC, rendering.wire(dict(spec)), metadata.IMMUTABLE)


def _driver_name(name: str, at: Path) -> Errors:
    if not name:
        yield fielderror.required(at)
        return
    if len(name) > _DRIVER_NAME:
        yield fielderror.too_long(at, _DRIVER_NAME)
    yield from fielderror.problems(at, name, names.dns1123_subdomain(name.lower()))
