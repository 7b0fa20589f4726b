"""Selectors of requests, classes and mappings: their compilation, and the devices of the cluster that match them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from drachma import cel
from drachma.api import devices, resourceslice
from drachma.queueing.devices.objects import DeviceObjects, Located, pools
from drachma.validation import fielderror
from drachma.validation.fielderror import FieldError
from drachma.validation.path import Path

_PROGRAMS: Final = cel.device_programs(
    consumable_capacity=False, list_type_attributes=False, expressions=cel.Expressions.STORED_IN_1_36
)

NO_CLASS: Final = 'deviceclasses.resource.k8s.io "{}" not found'


class Problem(Exception):  # noqa: N818 -- an answer on its way up, not a failure of the program
    """Field errors that keep a workload from being counted, at least one."""

    def __init__(self, problems: Sequence[FieldError]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = tuple(problems)


class Programs(msgspec.Struct, frozen=True):
    """Compiled selectors that must all match."""

    programs: tuple[cel.Program, ...]

    def matches(self, device: cel.Device) -> bool:
        """Return True if every selector matches the device. Raises cel.EvaluationError."""
        return all(program.matches(device) for program in self.programs)


def cel_device(device: resourceslice.Device, driver: str) -> cel.Device:
    """Return a device for selectors, without multiple allocations and without list attributes."""
    return cel.Device(driver, attributes=device.attributes, capacity=device.capacity, list_type_attributes=False)


def compile_all(
    selectors: Iterable[devices.DeviceSelector], at: Path, *, context: str
) -> tuple[Programs, tuple[FieldError, ...]]:
    """Return the programs of selectors that compile, and the errors of the others."""
    programs: list[cel.Program] = []
    problems: list[FieldError] = []
    for position, selector in enumerate(selectors):
        if selector.cel is None:
            continue
        expression = selector.cel.expression
        try:
            programs.append(_PROGRAMS.selector(expression))
        except cel.CompilationError as error:
            here = at.item(position).child("cel", "expression")
            problems.append(fielderror.invalid(here, expression, f"{context}: {error}"))
    return Programs(tuple(programs)), tuple(problems)


def compile_class(name: str, objects: DeviceObjects, at: Path) -> Programs:
    """Return the selectors of a class. Raises Problem if the class does not exist or a selector does not compile."""
    if not name:
        return Programs(())
    described = objects.classes.get(name)
    if described is None:
        detail = f"failed to get DeviceClass {name}: {NO_CLASS.format(name)}"
        raise Problem([fielderror.internal(at, detail)])
    context = f"DeviceClass {name} has invalid CEL selector"
    programs, problems = compile_all(described.spec.selectors, at, context=context)
    if problems:
        raise Problem(problems[:1])
    return programs


def matching(
    objects: DeviceObjects,
    driver: str,
    *,
    source: devices.DeviceSelector,
    device_class: Programs,
    request: Programs,
    at: Path,
) -> list[resourceslice.Device]:
    """Return devices of a driver's complete pools that a mapping's source, a class and a request all match.

    Raises Problem if a selector does not compile or cannot be evaluated.
    """
    source_programs, problems = compile_all((source,), at, context="deviceSelector CEL compilation failed")
    if problems:
        raise Problem(problems)
    steps = ((source_programs, "deviceSelector"), *_steps(device_class, request))
    return [each.device for each in _chosen(objects, driver, steps, at=at)]


def located(objects: DeviceObjects, *, device_class: Programs, request: Programs, at: Path) -> list[Located]:
    """Return devices of all complete pools that a class and a request match. Raises Problem like matching()."""
    steps = _steps(device_class, request)
    return [each for driver in objects.drivers for each in _chosen(objects, driver, steps, at=at)]


_Step = tuple[Programs, str]
"""Selectors, and their name in messages."""


def _steps(device_class: Programs, request: Programs) -> tuple[_Step, ...]:
    return (device_class, "DeviceClass selector"), (request, "request selector")


def _chosen(objects: DeviceObjects, driver: str, steps: tuple[_Step, ...], *, at: Path) -> Iterator[Located]:
    if objects.slices_error:
        raise Problem([fielderror.internal(at, f"failed to list ResourceSlices: {objects.slices_error}")])
    for pool in pools(objects.slices_of(driver)).values():
        for each in pool.devices if pool.is_complete else ():
            device = each.device
            subject = cel_device(device, driver)
            for programs, name in steps:
                try:
                    is_match = programs.matches(subject)
                except cel.EvaluationError as error:
                    detail = f"CEL evaluation error in {name} for device {device.name}: {error}"
                    raise Problem([fielderror.internal(at, detail)]) from None
                if not is_match:
                    break
            else:
                yield each
