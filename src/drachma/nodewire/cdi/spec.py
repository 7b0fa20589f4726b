"""Content of a CDI file, and the version of the interface that it needs.

Fields have the names of the files, and absent fields have defaults. Structs with the same content are equal.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Final, TypeAlias

import msgspec

from drachma import errors
from drachma.nodewire.cdi import names
from drachma.values import quotation

Uint32: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=2**32)]
Int64: TypeAlias = Annotated[int, msgspec.Meta(le=2**63 - 1)]


class Struct(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Part of a file. Fields with default values are not written."""


class DeviceNode(Struct, frozen=True, kw_only=True):
    """A device file. Missing properties come from the host's file."""

    path: str = ""
    host_path: str = ""
    type: str = ""
    major: Int64 = 0
    minor: Int64 = 0
    file_mode: Uint32 | None = None
    permissions: str = ""
    uid: Uint32 | None = None
    gid: Uint32 | None = None


class NetDevice(Struct, frozen=True, kw_only=True):
    """A network interface to move into the container."""

    host_interface_name: str = ""
    name: str = ""


class Hook(Struct, frozen=True, kw_only=True):
    """A program that the runtime calls as a hook."""

    hook_name: str = ""
    path: str = ""
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    timeout: Int64 | None = None


class Mount(Struct, frozen=True, kw_only=True):
    """A path of the host to mount in the container."""

    host_path: str = ""
    container_path: str = ""
    options: tuple[str, ...] = ()
    type: str = ""


class IntelRdt(Struct, frozen=True, kw_only=True):
    """Share of caches and memory bandwidth."""

    clos_id: str = msgspec.field(default="", name="closID")
    l3_cache_schema: str = ""
    mem_bw_schema: str = ""
    schemata: tuple[str, ...] | None = None
    enable_monitoring: bool = False


class ContainerEdits(Struct, frozen=True, kw_only=True):
    """Changes to the configuration of a container."""

    env: tuple[str, ...] = ()
    device_nodes: tuple[DeviceNode, ...] = ()
    net_devices: tuple[NetDevice, ...] = ()
    hooks: tuple[Hook, ...] = ()
    mounts: tuple[Mount, ...] = ()
    intel_rdt: IntelRdt | None = None
    additional_gids: tuple[Uint32, ...] = ()

    def __add__(self, other: "ContainerEdits") -> "ContainerEdits":
        """Return these edits followed by other edits."""
        return ContainerEdits(
            env=self.env + other.env,
            device_nodes=self.device_nodes + other.device_nodes,
            net_devices=self.net_devices + other.net_devices,
            hooks=self.hooks + other.hooks,
            mounts=self.mounts + other.mounts,
            intel_rdt=other.intel_rdt or self.intel_rdt,
            additional_gids=self.additional_gids + other.additional_gids,
        )


NO_EDITS: Final = ContainerEdits()


class Device(Struct, frozen=True, kw_only=True):
    """A device, with its name within its kind."""

    name: str = ""
    annotations: Mapping[str, str] = {}
    container_edits: ContainerEdits = NO_EDITS


class Spec(Struct, frozen=True, kw_only=True):
    """Content of a file: devices of one kind, and edits that apply with any of them."""

    cdi_version: str = ""
    kind: str = ""
    annotations: Mapping[str, str] = {}
    devices: tuple[Device, ...] = ()
    container_edits: ContainerEdits = NO_EDITS

    def all_edits(self) -> Iterator[ContainerEdits]:
        yield self.container_edits
        for device in self.devices:
            yield device.container_edits


_OLDEST: Final = "0.3.0"


def _needs_1_1_0(spec: Spec, edits: Sequence[ContainerEdits]) -> bool:
    return any(
        each.net_devices
        or (each.intel_rdt is not None and (each.intel_rdt.schemata is not None or each.intel_rdt.enable_monitoring))
        for each in spec.all_edits()
    )


def _needs_0_7_0(spec: Spec, edits: Sequence[ContainerEdits]) -> bool:
    return any(each.intel_rdt is not None or each.additional_gids for each in spec.all_edits())


def _needs_0_6_0(spec: Spec, edits: Sequence[ContainerEdits]) -> bool:
    is_annotated = bool(spec.annotations) or any(device.annotations for device in spec.devices)
    return is_annotated or "." in spec.kind.partition("/")[2]


def _needs_0_5_0(spec: Spec, edits: Sequence[ContainerEdits]) -> bool:
    return any("0" <= device.name[:1] <= "9" for device in spec.devices) or any(
        node.host_path for each in edits for node in each.device_nodes
    )


def _needs_0_4_0(spec: Spec, edits: Sequence[ContainerEdits]) -> bool:
    return any(mount.type for each in edits for mount in each.mounts)


_NEEDS: Final[Mapping[str, Callable[[Spec, Sequence[ContainerEdits]], bool] | None]] = {
    "1.1.0": _needs_1_1_0,
    "1.0.0": None,
    "0.8.0": None,
    "0.7.0": _needs_0_7_0,
    "0.6.0": _needs_0_6_0,
    "0.5.0": _needs_0_5_0,
    "0.4.0": _needs_0_4_0,
    "0.3.0": None,
    "0.2.0": None,
    "0.1.0": None,
}
"""All versions, the newest first, each with a check for features that need it."""


def minimum_version(spec: Spec) -> str:
    """Return the oldest version that has all features of a spec. Specs are written in it, for the oldest runtimes."""
    return _oldest_version(spec, list(spec.all_edits()))


def required_version(spec: Spec) -> str:
    """Return the oldest version that the interface's Go library accepts for a spec.

    It looks for device nodes with a host path and for mounts with a type in the last device only. So specs are read
    that are too old for their other devices.
    """
    return _oldest_version(spec, [*(device.container_edits for device in spec.devices[-1:]), spec.container_edits])


def _oldest_version(spec: Spec, edits: Sequence[ContainerEdits]) -> str:
    return next((version for version, needs in _NEEDS.items() if needs is not None and needs(spec, edits)), _OLDEST)


def check_version(spec: Spec) -> None:
    """Raise InvalidValueError if the version of a spec does not exist, or is too old for what the library looks at."""
    order = list(_NEEDS)
    version = spec.cdi_version.removeprefix("v")
    if version not in order:
        raise errors.InvalidValueError(f"invalid version {quotation.quote(spec.cdi_version)}")
    oldest = required_version(spec)
    if order.index(oldest) < order.index(version):
        raise errors.InvalidValueError(f"the spec version must be at least v{oldest}")


def qualified_names(spec: Spec) -> tuple[names.QualifiedName, ...]:
    """Return the names of the devices of a valid spec, in the order of the file."""
    vendor, device_class = names.split_kind(spec.kind)
    return tuple(names.QualifiedName(vendor, device_class, device.name) for device in spec.devices)
