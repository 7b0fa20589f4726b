"""Rules for storage: the kinds of storage.k8s.io, persistent volumes and their claims."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.validation import (
    collection,
    constraints,
    fielderror,
    formats,
    internalform,
    kindrules,
    rendering,
    rulenotation,
    typerules,
)
from drachma.validation.fielderror import Errors, Found
from drachma.validation.path import METADATA, Document, Path
from drachma.values import names, quantity

DEFAULT_ANNOTATIONS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
"""Annotations that mark the class of claims that name none."""

VOLUME_SOURCES: Final = (
    "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd", "quobyte", "cephfs",
    "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume",
    "azureDisk", "scaleIO", "local", "storageos", "csi",
)  # fmt: skip
"""Fields of which a persistent volume has one."""

_DRIVER_NAME: Final = 63
_PARAMETERS: Final = 512
_PARAMETER_BYTES: Final = 256 * 1024
_CLAIM_IMMUTABLE: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
_is_positive: Final = constraints.positive_quantity()


# CSI drivers


def driver_name(name: str, at: Path) -> Errors:
    """Check the name of a CSI driver: a short DNS subdomain in any case."""
    if len(name) > _DRIVER_NAME:
        yield fielderror.too_long(at, _DRIVER_NAME)
    yield from fielderror.problems(at, name, names.dns1123_subdomain(name.lower()))


def _check_node(spec: Document, at: Path) -> Errors:
    for place, driver, name, is_repeated in collection.walk_items(spec.get("drivers") or (), at.child("drivers")):
        yield from _TYPES["CSINodeDriver"](driver, place)
        if is_repeated:
            yield fielderror.duplicate(place.child("name"), name)
        yield from _topology_keys(driver.get("topologyKeys") or (), place.child("topologyKeys"))


def _topology_keys(keys: Sequence[str], at: Path) -> Errors:
    for position, key in enumerate(keys):
        if not key:
            yield fielderror.required(at)
        elif key in keys[:position]:
            yield fielderror.duplicate(at, key)
        yield from constraints.qualified_name(key, at)


def _check_node_update(spec: Document, at: Path, old: Document) -> Errors:
    """A driver keeps its node ID and topology keys; the number of volumes may change."""
    before = {driver.get("name"): driver for driver in old.get("drivers") or ()}
    for position, driver in enumerate(spec.get("drivers") or ()):
        old_driver = before.get(driver.get("name"))
        if old_driver is not None and any(
            old_driver.get(field) != driver.get(field) for field in ("nodeID", "topologyKeys")
        ):
            yield fielderror.invalid(at.child("drivers").item(position), rendering.wire(driver), typerules.IMMUTABLE)


def _check_name(content: Document, at: Path, metadata: Document) -> Errors:
    name = metadata.get("name", "")
    yield from driver_name(name, METADATA.child("name")) if name else [fielderror.required(METADATA.child("name"))]


# StorageClass


def _provisioner_name(name: str, at: Path) -> Found:
    return constraints.qualified_name(name.lower(), at)


def _parameters(parameters: Mapping[str, str], at: Path) -> Errors:
    if len(parameters) > _PARAMETERS:
        yield fielderror.too_long(at, _PARAMETERS)
    elif sum(len(key) + len(value) for key, value in parameters.items()) > _PARAMETER_BYTES:
        yield fielderror.too_long(at, _PARAMETER_BYTES)
    if "" in parameters:
        yield fielderror.invalid(at, "", "field can not be empty.")


def _topologies(terms: Sequence[Document], at: Path) -> Errors:
    """Check that each term has values for its keys, and that no term is repeated."""
    # As upstream, for which a term without expressions is a repetition.
    previous: list[dict[str, set[str]]] = [{}]
    for position, term in enumerate(terms):
        place = at.item(position).child("matchLabelExpressions")
        topology: dict[str, set[str]] = {}
        for index, expression in enumerate(term.get("matchLabelExpressions") or ()):
            key, values = expression.get("key", ""), expression.get("values") or ()
            yield from _topology_values(values, place.item(index).child("values"))
            yield from formats.label_key(key, place.item(index).child("key"))
            if key in topology:
                yield fielderror.duplicate(place.item(index).child("key"), key)
            topology[key] = set(values)
        if topology in previous:
            yield fielderror.duplicate(place, "")
        previous.append(topology)


def _topology_values(values: Sequence[str], at: Path) -> Errors:
    if not values:
        yield fielderror.required(at)
    for position, value in enumerate(values):
        if value in values[:position]:
            yield fielderror.duplicate(at.item(position), value)


# Persistent volumes and claims


def _lone_access_mode(modes: Sequence[str], at: Path) -> Errors:
    if "ReadWriteOncePod" in modes and len(set(modes)) > 1:
        yield fielderror.forbidden(at, "may not use ReadWriteOncePod with other access modes")


def _capacity(capacity: Document, at: Path) -> Errors:
    if list(capacity) != ["storage"]:
        yield fielderror.not_supported(at, rendering.wire(dict(capacity)), ("storage",))
    for name, amount in capacity.items():
        yield from _is_positive(amount, at.key(name))


def _check_volume_update(spec: Document, at: Path, old: Document) -> Errors:
    if any(spec.get(name) != old.get(name) for name in VOLUME_SOURCES):
        change = internalform.diff(old, spec, "PersistentVolumeSource")
        detail = f"spec.persistentvolumesource is immutable after creation\n{change}"
        yield fielderror.forbidden(at.child("persistentvolumesource"), detail)


def _check_storage_request(requirements: Document, at: Path) -> Errors:
    requests = requirements.get("requests") or {}
    if "storage" not in requests:
        yield fielderror.required(at.key("storage"))
    else:
        yield from _is_positive(requests["storage"], at.child("requests").key("storage"))


def check_claim(spec: Document, at: Path) -> Found:
    """Return the errors of the spec of a claim, or of a template of one."""
    return _TYPES["PersistentVolumeClaimSpec"](spec, at)


def _check_claim_update(claim: Document, at: Path, old: Document) -> Errors:
    """Check a changed spec: the controller sets two fields once, and bound claims change their size and attributes."""
    spec, before = claim.get("spec") or {}, old.get("spec") or {}
    expected, restored = dict(before), dict(spec)
    if not before.get("volumeName"):
        _copy_field("volumeName", spec, expected)
    if before.get("storageClassName") is None:
        restored.pop("storageClassName", None)
    if (claim.get("status") or {}).get("phase") == "Bound":
        _copy_field("volumeAttributesClassName", before, restored)
        if _size(spec) is not None:
            resources = restored["resources"]
            requests = dict(resources["requests"])
            _copy_field("storage", (before.get("resources") or {}).get("requests") or {}, requests)
            restored["resources"] = {**resources, "requests": requests}
    if restored != expected:
        change = internalform.diff(expected, restored, "PersistentVolumeClaimSpec")
        yield fielderror.forbidden(at.child("spec"), f"{_CLAIM_IMMUTABLE}\n{change}")
    size, old_size = _size(spec), _size(before)
    if size is not None and old_size is not None and size < old_size:
        capacity = ((old.get("status") or {}).get("capacity") or {}).get("storage", "0")
        if size <= quantity.Quantity.parse(capacity):
            place = at.child("spec", "resources", "requests", "storage")
            yield fielderror.forbidden(place, "field can not be less than status.capacity")


def _copy_field(name: str, source: Document, target: dict[str, Any]) -> None:
    """Give a field the value that it has in another object; without one, remove it."""
    if name in source:
        target[name] = source[name]
    else:
        target.pop(name, None)


def _size(spec: Document) -> quantity.Quantity | None:
    amount = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    return None if amount is None else quantity.Quantity.parse(amount)


_TYPES: Final = rulenotation.load("storage", globals())
KINDS: Final = kindrules.read(_TYPES)
