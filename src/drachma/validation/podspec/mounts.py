"""Rules for the volumes that a container mounts, and for its raw block devices."""

from collections.abc import Mapping, Sequence
from typing import Final

from drachma.validation import constraints, fielderror, rulenotation
from drachma.validation.fielderror import Errors
from drachma.validation.path import Document, Path

Volumes = Mapping[str, Document]
"""The valid volumes of a pod by name."""

_BLOCK_SOURCES: Final = ("persistentVolumeClaim", "ephemeral")


def check(container: Document, at: Path, *, volumes: Volumes) -> Errors:
    """Yield the errors of the mounts and devices of a container."""
    mounts, devices = container.get("volumeMounts") or (), container.get("volumeDevices") or ()
    paths = {device.get("name", ""): device.get("devicePath", "") for device in devices} if devices else {}
    security = container.get("securityContext") or {}
    previous: set[str] = set()
    for position, mount in enumerate(mounts):
        place = at.child("volumeMounts").item(position)
        yield from _check_place(mount, place, volumes=volumes, earlier_paths=previous, devices=paths)
        yield from _check_manner(mount, at.child("volumeMounts"), position=position, security=security)
        previous.add(mount.get("mountPath", ""))
    if devices:
        paths = {mount.get("name", ""): mount.get("mountPath", "") for mount in mounts}
        yield from _check_devices(devices, at.child("volumeDevices"), volumes=volumes, mounts=paths)


def _check_place(
    mount: Document, at: Path, *, volumes: Volumes, earlier_paths: set[str], devices: Mapping[str, str]
) -> Errors:
    name, path = mount.get("name", ""), mount.get("mountPath", "")
    if not name:
        yield fielderror.required(at.child("name"))
    if name not in volumes:
        yield fielderror.not_found(at.child("name"), name)
    if not path:
        yield fielderror.required(at.child("mountPath"))
    if path in earlier_paths:
        yield fielderror.invalid(at.child("mountPath"), path, "must be unique")
    if name in devices:
        yield fielderror.invalid(at.child("name"), name, "must not already exist in volumeDevices")
    if path in devices.values():
        yield fielderror.invalid(at.child("mountPath"), path, "must not already exist as a path in volumeDevices")


def _check_manner(mount: Document, at: Path, *, position: int, security: Document) -> Errors:
    """Check how a volume is mounted; upstream reports most of this at the list of mounts."""
    own = at.item(position)
    path, expression = mount.get("subPath", ""), mount.get("subPathExpr", "")
    if path:
        yield from constraints.relative_path(path, at.child("subPath"))
    if expression:
        if path:
            detail = "subPathExpr and subPath are mutually exclusive"
            yield fielderror.invalid(own.child("subPathExpr"), expression, detail)
        yield from constraints.relative_path(expression, at.child("subPathExpr"))
    yield from _TYPES["MountManner"](mount, at, security)
    yield from _TYPES["MountOptions"](mount, own)


def _check_devices(devices: Sequence[Document], at: Path, *, volumes: Volumes, mounts: Mapping[str, str]) -> Errors:
    names: set[str] = set()
    paths: set[str] = set()
    for position, device in enumerate(devices):
        own, name, path = at.item(position), device.get("name", ""), device.get("devicePath", "")
        volume = volumes.get(name)
        if not name:
            yield fielderror.required(own.child("name"))
        if name in names:
            yield fielderror.invalid(own.child("name"), name, "must be unique")
        if volume is None:
            yield fielderror.not_found(own.child("name"), name)
        elif not any(volume.get(field) is not None for field in _BLOCK_SOURCES):
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield fielderror.invalid(own.child("name"), name, detail)
        if not path:
            yield fielderror.required(own.child("devicePath"))
        if path in paths:
            yield fielderror.invalid(own.child("devicePath"), path, "must be unique")
        if path and constraints.no_backsteps(path, at):
            yield fielderror.invalid(own.child("devicePath"), path, "can not contain backsteps ('..')")
        else:
            paths.add(path)
        if name in mounts:
            yield fielderror.invalid(own.child("name"), name, "must not already exist in volumeMounts")
        if path in mounts.values():
            yield fielderror.invalid(own.child("devicePath"), path, "must not already exist as a path in volumeMounts")
        if name:
            names.add(name)


_TYPES: Final = rulenotation.load("podspec/mounts", globals())
