"""The devices of all CDI files of a machine: what a container runtime knows when it starts a container.

A device of a later directory hides one of the same name in an earlier one. Two files of one directory that have a
device of the same name are both wrong about it, and nobody gets it, not even from a later directory.
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
"""Where runtimes look: what administrators wrote, and what drivers write, which is gone after a reboot."""

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
    """Nobody knows these devices."""

    def __init__(self, devices: Sequence[str]) -> None:
        super().__init__(f"unresolvable CDI devices {', '.join(devices)}")
        self.devices: Final = tuple(devices)


class Registry(msgspec.Struct, frozen=True):
    """What files said when they were read. ``problems`` has what is wrong with a file, by its path."""

    entries: Mapping[str, _Entry]
    problems: Mapping[pathlib.Path, tuple[str, ...]]

    @property
    def devices(self) -> tuple[str, ...]:
        """The qualified names of all devices, sorted."""
        return tuple(sorted(self.entries))

    def container_edits(self, devices: Sequence[str]) -> spec.ContainerEdits:
        """What the devices need together; edits of a file come once, before those of its first device.

        Raises:
            UnresolvedError: some of the devices are in no file.
        """
        missing = [device for device in devices if device not in self.entries]
        if missing:
            raise UnresolvedError(missing)
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
        self, devices: Sequence[str], oci: Mapping[str, Any], *, look: edits.Look | None = None
    ) -> dict[str, Any]:
        """An OCI configuration with what the devices need.

        Raises:
            UnresolvedError: some of the devices are in no file.
            errors.InvalidValueError: a device file of the host is missing or of another type.
        """
        total = self.container_edits(devices)
        try:
            return edits.apply(total, oci, look=look or look_up)
        except errors.InvalidValueError as error:
            raise errors.InvalidValueError(f"failed to inject devices: {error}") from None


def read(directories: Sequence[pathlib.Path] = DIRECTORIES) -> Registry:
    """What all files of the directories say, the later directory having the last word."""
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
                other = entries.get(str(name))
                if other is not None and other.file.priority == priority:
                    conflicts.add(str(name))
                    problem = _conflict(name, file, other.file)
                    for each in (file.path, other.file.path):
                        problems[each] = (*problems.get(each, ()), problem)
                else:
                    entries[str(name)] = _Entry(file, device)
    kept = {name: entry for name, entry in entries.items() if name not in conflicts}
    return Registry(kept, problems)


def load(path: pathlib.Path) -> spec.Spec:
    """The valid spec of a file.

    Raises:
        OSError: it cannot be read.
        errors.DecodeError: it is not of the form of a spec.
        errors.InvalidValueError: it breaks a rule.
    """
    # Administrators may link such files. A pipe would hold the agent for ever.
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
    """The device file at a path of this machine; an OSError where there is none, or something else."""
    found = os.lstat(path)
    kind = _TYPES.get(stat.S_IFMT(found.st_mode))
    if kind is None:
        raise OSError("not a device node")
    return edits.HostDevice(kind, os.major(found.st_rdev), os.minor(found.st_rdev), stat.S_IMODE(found.st_mode))


def _files(directory: pathlib.Path) -> list[pathlib.Path]:
    if not directory.is_dir():
        return []
    return sorted(path for path in directory.iterdir() if path.suffix in _EXTENSIONS and not path.is_dir())


def _conflict(name: names.QualifiedName, file: _File, other: _File) -> str:
    shown = [quotation.quote(text) for text in (str(name), str(file.path), str(other.path))]
    return f"conflicting device {shown[0]} (specs {shown[1]}, {shown[2]})"
