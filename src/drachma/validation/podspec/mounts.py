"""Rules for where a container sees the volumes of its pod."""

from collections.abc import Mapping
from typing import Any, Final

from drachma.validation import fielderror, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.validation.podspec import choices

_PROPAGATIONS: Final = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE: Final = ("Disabled", "Enabled", "IfPossible")
_OPTIONS: Final = ("nodev", "noexec", "nosuid")
_BLOCK: Final = ("persistentVolumeClaim", "ephemeral")

Volumes = Mapping[str, Mapping[str, Any]]
"""The good volumes of a pod by name."""


def check(container: Mapping[str, Any], at: Path, *, volumes: Volumes) -> Errors:
    """The mounts and the raw devices of a container."""
    mounts, devices = container.get("volumeMounts") or (), container.get("volumeDevices") or ()
    if mounts:
        taken = {device.get("name", ""): device.get("devicePath", "") for device in devices}
        is_privileged = bool((container.get("securityContext") or {}).get("privileged"))
        seen: set[str] = set()
        for position, mount in enumerate(mounts):
            path = mount.get("mountPath", "")
            yield from _place(mount, at.child("volumeMounts").item(position), volumes=volumes, seen=seen, taken=taken)
            yield from _manner(mount, at.child("volumeMounts"), position=position, is_privileged=is_privileged)
            seen.add(path)
    if devices:
        taken = {mount.get("name", ""): mount.get("mountPath", "") for mount in mounts}
        yield from _devices(devices, at.child("volumeDevices"), volumes=volumes, taken=taken)


def _place(mount: Mapping[str, Any], at: Path, *, volumes: Volumes, seen: set[str], taken: Mapping[str, str]) -> Errors:
    name, path = mount.get("name", ""), mount.get("mountPath", "")
    if not name:
        yield fielderror.required(at.child("name"))
    if name not in volumes:
        yield fielderror.not_found(at.child("name"), name)
    if not path:
        yield fielderror.required(at.child("mountPath"))
    if path in seen:
        yield fielderror.invalid(at.child("mountPath"), path, "must be unique")
    if name in taken:
        yield fielderror.invalid(at.child("name"), name, "must not already exist in volumeDevices")
    if path in taken.values():
        yield fielderror.invalid(at.child("mountPath"), path, "must not already exist as a path in volumeDevices")


def _manner(mount: Mapping[str, Any], at: Path, *, position: int, is_privileged: bool) -> Errors:
    """How a volume is mounted; upstream reports most of this at the list of mounts."""
    own = at.item(position)
    part, expression = mount.get("subPath", ""), mount.get("subPathExpr", "")
    if part:
        yield from choices.descending(part, at.child("subPath"))
    if expression:
        if part:
            yield fielderror.invalid(
                own.child("subPathExpr"), expression, "subPathExpr and subPath are mutually exclusive"
            )
        yield from choices.descending(expression, at.child("subPathExpr"))
    propagation = mount.get("mountPropagation")
    if propagation is not None:
        path = at.child("mountPropagation")
        if propagation not in _PROPAGATIONS:
            yield fielderror.not_supported(path, rendering.named(propagation), _PROPAGATIONS)
        if propagation == "Bidirectional" and not is_privileged:
            detail = "Bidirectional mount propagation is available only to privileged containers"
            yield fielderror.forbidden(path, detail)
    recursive = mount.get("recursiveReadOnly")
    if recursive is not None and recursive != "Disabled":
        path = at.child("recursiveReadOnly")
        if recursive not in _RECURSIVE:
            yield fielderror.not_supported(path, rendering.named(recursive), _RECURSIVE)
        else:
            if not mount.get("readOnly"):
                yield fielderror.forbidden(path, "may only be specified when readOnly is true")
            if propagation not in (None, "None"):
                detail = "may only be specified when mountPropagation is None or not specified"
                yield fielderror.forbidden(path, detail)
    seen = set()
    for index, option in enumerate(mount.get("bindMountOptions") or ()):
        if option not in _OPTIONS:
            yield fielderror.not_supported(own.child("bindMountOptions").item(index), option, _OPTIONS)
        if option in seen:
            yield fielderror.duplicate(own.child("bindMountOptions").item(index), option)
        seen.add(option)


def _devices(devices: Any, at: Path, *, volumes: Volumes, taken: Mapping[str, str]) -> Errors:
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
        elif not any(volume.get(field) is not None for field in _BLOCK):
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield fielderror.invalid(own.child("name"), name, detail)
        if not path:
            yield fielderror.required(own.child("devicePath"))
        if path in paths:
            yield fielderror.invalid(own.child("devicePath"), path, "must be unique")
        if path and choices.without_steps_back(path, at):
            yield fielderror.invalid(own.child("devicePath"), path, "can not contain backsteps ('..')")
        else:
            paths.add(path)
        if name in taken:
            yield fielderror.invalid(own.child("name"), name, "must not already exist in volumeMounts")
        if path in taken.values():
            yield fielderror.invalid(own.child("devicePath"), path, "must not already exist as a path in volumeMounts")
        if name:
            names.add(name)
