"""What containers that really run see of devices that are only imagined: a variable for each, by a CDI file."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from drachma.nodewire.cdi import files, spec

_NO_NAME = re.compile(r"[^A-Z0-9]+")


def write(slices: Iterable[Mapping[str, Any]], folder: pathlib.Path) -> None:
    """Writes the files of all drivers of these slices; machines that have a device of the same name share it.

    Raises:
        OSError: the folder cannot be written.
    """
    devices: dict[str, set[str]] = {}
    for each in slices:
        names = devices.setdefault(str(each["spec"]["driver"]), set())
        names.update(str(device["name"]) for device in each["spec"].get("devices") or ())
    for driver, names in devices.items():
        kind = f"{driver}/device"
        content = spec.Spec(kind=kind, devices=tuple(_device(driver, name) for name in sorted(names)))
        files.write(folder / files.file_name(kind), content)


def _device(driver: str, name: str) -> spec.Device:
    variable = f"SIMULATED_DEVICE_{_NO_NAME.sub('_', name.upper())}={driver}/{name}"
    return spec.Device(name=name, container_edits=spec.ContainerEdits(env=(variable,)))
