"""Devices of all CDI files of a machine, as a container runtime knows them.

A device in a later directory hides a device of the same name in an earlier directory. Two files of one directory with
a device of the same name are in conflict: the device is unavailable, even from other directories.
"""

import os
import pathlib
import stat
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from drachma import errors
from drachma.nodewire import regularfile
from drachma.nodewire.cdi import document, edits, names, rules, spec
from drachma.values import quotation

DIRECTORIES: Final = (pathlib.Path("/etc/cdi"), pathlib.Path("/var/run/cdi"))
"""Directories that runtimes read: files of administrators, and files of drivers, which are gone after a reboot."""

_EXTENSIONS: Final = frozenset({".json", ".yaml"})
_FILE_LIMIT: Final = 16 * 1024 * 1024
_TYPES: Final = {stat.S_IFBLK: "b", stat.S_IFCHR: "c", stat.S_IFIFO: edits.FIFO}


class _File(NamedTuple):
    path: pathlib.Path
    priority: int
    content: spec.Spec


class _Entry(NamedTuple):
    file: _File
    device: spec.Device


class UnresolvedError(errors.InvalidValueError):
    """Devices that no file has."""

    def __init__(self, devices: Sequence[str]) -> None:
        super().__init__(f"unresolvable CDI devices {', '.join(devices)}")
        self.devices: Final = tuple(devices)


class Registry(msgspec.Struct, frozen=True):
    """Content of the files when they were read; ``problems`` by the path of the file."""

    entries: Mapping[str, _Entry]
    problems: Mapping[pathlib.Path, tuple[str, ...]]

    @property
    def devices(self) -> tuple[str, ...]:
        """Qualified names of all devices, sorted."""
        return tuple(sorted(self.entries))

    def container_edits(self, devices: Sequence[str]) -> spec.ContainerEdits:
        """Return the edits of all devices. The edits of a file come once, before the edits of its first device.

        Raises:
            UnresolvedError: some of the devices are in no file.
        """
        unknown = [device for device in devices if device not in self.entries]
        if unknown:
            raise UnresolvedError(unknown)
        total = spec.NO_EDITS
        files: set[pathlib.Path] = set()
        for device in devices:
            file, entry = self.entries[device]
            if file.path not in files:
                files.add(file.path)
                total += file.content.container_edits
            total += entry.container_edits
        return total

    def inject(
        self, devices: Sequence[str], oci: Mapping[str, Any], *, find_device: edits.FindDevice | None = None
    ) -> dict[str, Any]:
        """Return an OCI configuration with the edits of the devices.

        Raises:
            UnresolvedError: some of the devices are in no file.
            errors.InvalidValueError: a device file of the host is missing or of another type.
        """
        total = self.container_edits(devices)
        try:
            return edits.apply(total, oci, find_device=find_device or look_up)
        except errors.InvalidValueError as error:
            raise errors.InvalidValueError(f"failed to inject devices: {error}") from None


def read(directories: Sequence[pathlib.Path] = DIRECTORIES) -> Registry:
    """Read all files of the directories. Later directories take precedence."""
    entries: dict[str, _Entry] = {}
    conflicts: set[str] = set()
    problems: dict[pathlib.Path, tuple[str, ...]] = {}
    for priority, directory in enumerate(directories):
        for path in _files(directory):
            try:
                file = _File(path, priority, load(path))
            except (OSError, errors.DecodeError, errors.InvalidValueError) as error:
                problems[path] = (f"failed to load CDI Spec {error}",)
                continue
            for name, device in zip(spec.qualified_names(file.content), file.content.devices, strict=True):
                earlier = entries.get(str(name))
                if earlier is not None and earlier.file.priority == priority:
                    conflicts.add(str(name))
                    problem = _conflict(name, file, earlier.file)
                    for each in (file.path, earlier.file.path):
                        problems[each] = (*problems.get(each, ()), problem)
                else:
                    entries[str(name)] = _Entry(file, device)
    return Registry({name: entry for name, entry in entries.items() if name not in conflicts}, problems)


def load(path: pathlib.Path) -> spec.Spec:
    """Return the valid spec in a file.

    Raises:
        OSError: the file cannot be read.
        errors.DecodeError: the file does not have the form of a spec.
        errors.InvalidValueError: the spec breaks a rule.
    """
    # Administrators may link such files. A pipe would block the agent.
    data = regularfile.read(path, _FILE_LIMIT + 1, follows_links=True)
    if len(data) > _FILE_LIMIT:
        raise errors.DecodeError(f"failed to parse CDI Spec {quotation.quote(str(path))}: larger than {_FILE_LIMIT}")
    try:
        content = document.parse(data)
    except errors.DecodeError as error:
        raise errors.DecodeError(f"failed to parse CDI Spec {quotation.quote(str(path))}: {error}") from None
    rules.check(content)
    return content


def look_up(path: str) -> edits.HostDevice:
    """Return the device file at a path of this machine. Raises OSError if there is none, or another kind of file."""
    status = os.lstat(path)
    kind = _TYPES.get(stat.S_IFMT(status.st_mode))
    if kind is None:
        raise OSError("not a device node")
    return edits.HostDevice(kind, os.major(status.st_rdev), os.minor(status.st_rdev), stat.S_IMODE(status.st_mode))


def _files(directory: pathlib.Path) -> list[pathlib.Path]:
    if not directory.is_dir():
        return []
    return sorted(path for path in directory.iterdir() if path.suffix in _EXTENSIONS and not path.is_dir())


def _conflict(name: names.QualifiedName, file: _File, earlier: _File) -> str:
    device, *paths = [quotation.quote(text) for text in (str(name), str(file.path), str(earlier.path))]
    return f"conflicting device {device} (specs {', '.join(paths)})"
