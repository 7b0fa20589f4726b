"""Changes that CDI edits make to the OCI configuration of a container, which is a plain document.

Properties of a device file that a spec leaves out come from the host's file, which the caller looks up. This module
accesses no files.
"""

import posixpath
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from drachma import errors
from drachma.nodewire.cdi import rules, spec
from drachma.values import quotation

FIFO: Final = "p"
_IN_CGROUP: Final = frozenset({"b", "c"})
_ALL_ACCESS: Final = "rwm"


class HostDevice(NamedTuple):
    """A device file of the host: ``b``, ``c`` or ``p``, its numbers, and its permission bits."""

    type: str
    major: int
    minor: int
    mode: int


FindDevice: TypeAlias = Callable[[str], HostDevice]
"""Returns the device file at a path of the host; raises OSError if there is none, or another kind of file."""

_Document: TypeAlias = dict[str, Any]


def apply(edits: spec.ContainerEdits, oci: Mapping[str, Any], *, find_device: FindDevice) -> dict[str, Any]:
    """Return the configuration with the edits, without changing the original.

    Raises:
        errors.InvalidValueError: a device file of the host is missing or of another type.
    """
    document = dict(oci)
    if edits.env:
        document["process"] = {**_process(document), "env": _environment(_process(document).get("env", ()), edits.env)}
    if edits.device_nodes:
        document["linux"] = _add_nodes(document, edits.device_nodes, find_device)
    if edits.net_devices:
        linux = document.get("linux") or {}
        interfaces = {each.host_interface_name: _fields(name=each.name) for each in edits.net_devices}
        document["linux"] = {**linux, "netDevices": {**(linux.get("netDevices") or {}), **interfaces}}
    if edits.mounts:
        document["mounts"] = _mounts(document, edits.mounts)
    if edits.hooks:
        document["hooks"] = _hooks(document.get("hooks") or {}, edits.hooks)
    if edits.intel_rdt is not None:
        document["linux"] = {**(document.get("linux") or {}), "intelRdt": msgspec.to_builtins(edits.intel_rdt)}
    if any(edits.additional_gids):
        document["process"] = _add_groups(_process(document), edits.additional_gids)
    return document


def _process(document: Mapping[str, Any]) -> _Document:
    return document.get("process") or {"user": {"uid": 0, "gid": 0}, "cwd": ""}


def _environment(variables: Sequence[str], more: Sequence[str]) -> list[str]:
    """Add variables. A variable that exists keeps its position and gets the new value."""
    merged = list(variables)
    positions = {variable.partition("=")[0]: position for position, variable in enumerate(merged)}
    for variable in more:
        position = positions.setdefault(variable.partition("=")[0], len(merged))
        merged[position : position + 1] = [variable]
    return merged


def _add_nodes(document: Mapping[str, Any], nodes: Sequence[spec.DeviceNode], find_device: FindDevice) -> _Document:
    linux = dict(document.get("linux") or {})
    user: Mapping[str, Any] = (document.get("process") or {}).get("user") or {}
    for node in nodes:
        device = _device(_complete(node, find_device), user)
        devices = list(linux.get("devices") or ())
        position = next((position for position, each in enumerate(devices) if each["path"] == node.path), None)
        if position is not None:
            del devices[position]
        linux["devices"] = [*devices, device]
        if device["type"] in _IN_CGROUP:
            access = {"": _ALL_ACCESS, rules.NO_PERMISSIONS: ""}.get(node.permissions, node.permissions)
            numbers = {"major": device["major"], "minor": device["minor"]}
            rule = {"allow": True, "type": device["type"], **numbers, **_fields(access=access)}
            resources = linux.get("resources") or {}
            linux["resources"] = {**resources, "devices": [*(resources.get("devices") or ()), rule]}
    return linux


def _device(node: spec.DeviceNode, user: Mapping[str, Any]) -> _Document:
    uid = node.uid if node.uid is not None else user.get("uid") or None
    gid = node.gid if node.gid is not None else user.get("gid") or None
    device: _Document = {"path": node.path, "type": node.type, "major": node.major, "minor": node.minor}
    optional = {"fileMode": node.file_mode, "uid": uid, "gid": gid}
    return device | {field: value for field, value in optional.items() if value is not None}


def _complete(node: spec.DeviceNode, find_device: FindDevice) -> spec.DeviceNode:
    """Complete a node from the host's device file.

    The host need not have the file if the spec is complete. From the host's file, a complete spec takes only the mode.
    """
    is_complete = node.type != "" and (node.major != 0 or node.type == FIFO)
    host_path = node.host_path or node.path
    try:
        host = find_device(host_path)
    except OSError as error:
        if is_complete:
            return node
        raise errors.InvalidValueError(
            f"failed to stat CDI host device {quotation.quote(host_path)}: {_reason(error)}"
        ) from None
    if node.file_mode is None:
        node = msgspec.structs.replace(node, file_mode=host.mode)
    if is_complete:
        return node
    if (node.type or host.type) != host.type:
        paths = f"({quotation.quote(node.path)}, {quotation.quote(host_path)})"
        raise errors.InvalidValueError(f"CDI device {paths}, host type mismatch ({node.type}, {host.type})")
    if host.type == FIFO or node.major:
        return msgspec.structs.replace(node, type=host.type)
    return msgspec.structs.replace(node, type=host.type, major=host.major, minor=host.minor)


def _reason(error: OSError) -> str:
    """Return the system's text as Go words it, with a lower-case first letter."""
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]


def _mounts(document: Mapping[str, Any], mounts: Sequence[spec.Mount]) -> list[_Document]:
    """Add mounts, replacing mounts of the same destination. Deeper destinations come later."""
    namespaces = (document.get("linux") or {}).get("namespaces") or ()
    is_mapped = any(each.get("type") == "user" for each in namespaces)
    merged: list[_Document] = list(document.get("mounts") or ())
    for mount in mounts:
        destinations = [each["destination"] for each in merged]
        if mount.container_path in destinations:
            del merged[destinations.index(mount.container_path)]
        options = [*mount.options, *(_mapping(mount) if is_mapped else ())]
        merged.append(
            {"destination": mount.container_path, **_fields(source=mount.host_path, type=mount.type, options=options)}
        )
    return sorted(merged, key=lambda each: _clean(each["destination"]).count("/"))


def _mapping(mount: spec.Mount) -> tuple[str, ...]:
    """Return the option that maps a bind mount into the user namespace, unless it has one."""
    mapping = ("idmap",) if mount.type == "bind" else ()
    for option in mount.options:
        if option in {"idmap", "ridmap"}:
            return ()
        if option in {"bind", "rbind"}:
            mapping = ("idmap",) if option == "bind" else ("ridmap",)
    return mapping


def _clean(path: str) -> str:
    """Clean a path as Go does, which turns two leading slashes into one."""
    cleaned = posixpath.normpath(path)
    return cleaned[1:] if cleaned.startswith("//") else cleaned


def _hooks(hooks: Mapping[str, Any], more: Sequence[spec.Hook]) -> _Document:
    merged = dict(hooks)
    for hook in more:
        call = {"path": hook.path, **_fields(args=list(hook.args), env=list(hook.env))}
        if hook.timeout is not None:
            call["timeout"] = hook.timeout
        merged[hook.hook_name] = [*(merged.get(hook.hook_name) or ()), call]
    return merged


def _add_groups(process: _Document, groups: Sequence[int]) -> _Document:
    """Add groups, except the root group and groups that the user has."""
    user = process.get("user") or {"uid": 0, "gid": 0}
    merged = list(user.get("additionalGids") or ())
    for group in groups:
        if group and group not in merged:
            merged.append(group)
    return {**process, "user": {**user, "additionalGids": merged}}


def _fields(**fields: Any) -> _Document:
    """Return the fields that are not empty. An OCI configuration has no empty fields."""
    return {field: value for field, value in fields.items() if value}
