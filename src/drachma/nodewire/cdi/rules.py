"""Validation of a spec. Messages and their order follow the interface's Go library."""

from collections.abc import Iterable, Mapping
from typing import Final

from drachma import errors
from drachma.nodewire.cdi import names, spec
from drachma.values import names as valuenames
from drachma.values import quotation

HOOKS: Final = ("prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop")
"""Hooks of an OCI runtime."""

NO_PERMISSIONS: Final = "none"

_NODE_TYPES: Final = frozenset({"", "b", "c", "u", "p"})
_CLOS_LENGTH: Final = 4096
_ANNOTATIONS_SIZE: Final = 256 * 1024


def check(document: spec.Spec) -> None:
    """Check a spec.

    Raises:
        errors.InvalidValueError: names the first rule that the spec breaks.
    """
    try:
        _check(document)
    except errors.InvalidValueError as error:
        raise errors.InvalidValueError(f"invalid CDI Spec: {error}") from None


def _check(document: spec.Spec) -> None:
    spec.check_version(document)
    vendor, device_class = names.split_kind(document.kind)
    names.check_vendor(vendor)
    names.check_class(device_class)
    _check_edits(document.container_edits)
    device_names: set[str] = set()
    for device in document.devices:
        quoted = quotation.quote(device.name)
        try:
            _check_device(device)
        except errors.InvalidValueError as error:
            raise errors.InvalidValueError(f"failed add device {quoted}: {error}") from None
        if device.name in device_names:
            raise errors.InvalidValueError(f"invalid spec, multiple device {quoted}")
        device_names.add(device.name)
    if not device_names:
        raise errors.InvalidValueError("invalid spec, no devices")


def check_annotations(document: spec.Spec) -> None:
    """Raise InvalidValueError for annotations that the interface does not allow.

    The Go library intends this check but does not make it. So it applies to writing, and not to reading.
    """
    owners = [(document.kind, document.annotations)]
    owners += [
        (str(name), device.annotations)
        for name, device in zip(spec.qualified_names(document), document.devices, strict=True)
    ]
    for owner, annotations in owners:
        for key in annotations:
            for problem in valuenames.qualified_name(key.lower()):
                raise errors.InvalidValueError(f"{owner}.annotations.{key} is invalid: {problem}")
        _check_size(owner, annotations)


def _check_size(owner: str, annotations: Mapping[str, str]) -> None:
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > _ANNOTATIONS_SIZE:
        raise errors.InvalidValueError(
            f"{owner}.annotations is too long: annotations size {size} is larger than limit {_ANNOTATIONS_SIZE}"
        )


def _check_device(device: spec.Device) -> None:
    names.check_device(device.name)
    if device.container_edits == spec.NO_EDITS:
        raise errors.InvalidValueError("invalid device, empty device edits")
    try:
        _check_edits(device.container_edits)
    except errors.InvalidValueError as error:
        raise errors.InvalidValueError(f"invalid device {quotation.quote(device.name)}: {error}") from None


def _check_edits(edits: spec.ContainerEdits) -> None:
    _check_environment(edits.env, "container edits")
    for node in edits.device_nodes:
        _check_node(node)
    for hook in edits.hooks:
        _check_hook(hook)
    for mount in edits.mounts:
        if not mount.host_path:
            raise errors.InvalidValueError("invalid mount, empty host path")
        if not mount.container_path:
            raise errors.InvalidValueError("invalid mount, empty container path")
    if edits.intel_rdt is not None:
        _check_class_of_service(edits.intel_rdt.clos_id)
    _check_net_devices(edits.net_devices)


def _check_environment(variables: Iterable[str], subject: str) -> None:
    for variable in variables:
        if variable.find("=") <= 0:
            raise errors.InvalidValueError(
                f"invalid {subject}: invalid environment variable {quotation.quote(variable)}"
            )


def _check_node(node: spec.DeviceNode) -> None:
    quoted = quotation.quote(node.path)
    if not node.path:
        raise errors.InvalidValueError("invalid (empty) device path")
    if node.type not in _NODE_TYPES:
        raise errors.InvalidValueError(f"device {quoted}: invalid type {quotation.quote(node.type)}")
    if node.permissions != NO_PERMISSIONS and node.permissions.strip("rwm"):
        raise errors.InvalidValueError(f"device {quoted}: invalid permissions {quotation.quote(node.permissions)}")


def _check_hook(hook: spec.Hook) -> None:
    quoted = quotation.quote(hook.hook_name)
    if hook.hook_name not in HOOKS:
        raise errors.InvalidValueError(f"invalid hook name {quoted}")
    if not hook.path:
        raise errors.InvalidValueError(f"invalid hook {quoted} with empty path")
    _check_environment(hook.env, f"hook {quoted}")


def _check_class_of_service(name: str) -> None:
    """Check the name of a directory of the kernel; a slash is the root directory."""
    if name == "/":
        return
    if len(name.encode()) >= _CLOS_LENGTH or name in {".", ".."} or "/" in name or "\n" in name:
        raise errors.InvalidValueError("invalid ClosID")


def _check_net_devices(devices: Iterable[spec.NetDevice]) -> None:
    by_host: dict[str, str] = {}
    by_name: dict[str, str] = {}
    for device in devices:
        host, name = device.host_interface_name, device.name
        if not host:
            raise errors.InvalidValueError("invalid linux net device, empty HostInterfaceName")
        if not name:
            raise errors.InvalidValueError("invalid linux net device, empty Name")
        if host in by_host:
            raise errors.InvalidValueError(_duplicate("HostInterfaceName", host, "names", (name, by_host[host])))
        by_host[host] = name
        if name in by_name:
            raise errors.InvalidValueError(_duplicate("Name", name, "HostInterfaceName", (host, by_name[name])))
        by_name[name] = host


def _duplicate(field: str, value: str, counterpart: str, pair: tuple[str, str]) -> str:
    first, second = map(quotation.quote, pair)
    return (
        f"invalid linux net device, duplicate {field} {quotation.quote(value)} with {counterpart} {first} and {second}"
    )
