"""Selectors of requests, classes and mappings: compiled, and asked which devices of the cluster they choose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from drachma import cel
from drachma.api import devices, resourceslice
from drachma.queueing.devices.deviceobjects import DeviceObjects, Located, pools
from drachma.validation import fielderror
from drachma.validation.fielderror import FieldError
from drachma.validation.path import Path

_PROGRAMS: Final = cel.device_programs(
    consumable_capacity=False, list_type_attributes=False, expressions=cel.Expressions.STORED_IN_1_36
)

NO_CLASS: Final = 'deviceclasses.resource.k8s.io "{}" not found'


class Problem(Exception):  # noqa: N818 -- an answer on its way up, not a failure of the program
    """What keeps a workload from being counted: field errors, at least one."""

    def __init__(self, problems: Sequence[FieldError]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = tuple(problems)


class Programs(msgspec.Struct, frozen=True):
    """Compiled selectors that must all say yes."""

    programs: tuple[cel.Program, ...]

    def matches(self, device: cel.Device) -> bool:
        """Whether all choose the device; raises cel.EvaluationError."""
        return all(program.matches(device) for program in self.programs)


def as_selected(device: resourceslice.Device, driver: str) -> cel.Device:
    """A device as selectors see it: none allows multiple allocations, and none may have lists for attributes."""
    return cel.Device(driver, attributes=device.attributes, capacity=device.capacity, list_type_attributes=False)


def compile_all(
    selectors: Iterable[devices.DeviceSelector], at: Path, *, context: str
) -> tuple[Programs, tuple[FieldError, ...]]:
    """The programs of those that compile, and what is wrong with the others."""
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
    """The selectors of a class; a Problem where it does not exist or its first bad selector does not compile."""
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
    """Devices of a driver's complete pools that a mapping's source, a class and a request all choose.

    A Problem where a selector does not compile or cannot be evaluated.
    """
    chosen, problems = compile_all((source,), at, context="deviceSelector CEL compilation failed")
    if problems:
        raise Problem(problems)
    steps = ((chosen, "deviceSelector"), *_steps(device_class, request))
    return [each.device for each in _chosen(objects, driver, steps, at=at)]


def located(objects: DeviceObjects, *, device_class: Programs, request: Programs, at: Path) -> list[Located]:
    """Devices of all complete pools that a class and a request both choose; a Problem as above."""
    steps = _steps(device_class, request)
    return [each for driver in objects.drivers for each in _chosen(objects, driver, steps, at=at)]


_Step = tuple[Programs, str]
"""Selectors, and how messages call them."""


def _steps(device_class: Programs, request: Programs) -> tuple[_Step, ...]:
    return (device_class, "DeviceClass selector"), (request, "request selector")


def _chosen(objects: DeviceObjects, driver: str, steps: tuple[_Step, ...], *, at: Path) -> Iterator[Located]:
    if objects.slices_error:
        raise Problem([fielderror.internal(at, f"failed to list ResourceSlices: {objects.slices_error}")])
    for pool in pools(objects.slices_of(driver)).values():
        for each in pool.devices if pool.is_complete else ():
            device = each.device
            subject = as_selected(device, driver)
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
