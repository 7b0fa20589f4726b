"""Quotas for devices that a CEL expression selects: an alternative of KEP-2941 that Kueue does not have.

A class may have devices of several models. Whether a device counts for such a quota is known only after its allocation,
so a request is charged as if all its devices were selected, unless no device that it can get is. The charge is settled
like other upper bounds.
"""

from __future__ import annotations

from collections.abc import Iterable

from drachma import cel
from drachma.queueing import resourcelists
from drachma.queueing.configuration.queueingpolicy import QueueingPolicy
from drachma.queueing.devices.objects import DeviceObjects, Located
from drachma.queueing.devices.selectors import Problem, Programs, cel_device, compile_all, compile_class, located
from drachma.validation import fielderror
from drachma.validation.path import Path
from drachma.values import quantity

_ONE = quantity.Quantity.from_int(1)


def charge(policy: QueueingPolicy, device_class: str, device: Located, *, at: Path) -> dict[str, quantity.Quantity]:
    """Return the charge of one device of a class: one for every quota that selects it. Raises Problem."""
    charges: dict[str, quantity.Quantity] = {}
    for selection in policy.selections(device_class):
        programs, problems = compile_all((selection.device_selector,), at, context="selectedDevices do not compile")
        if problems:
            raise Problem(problems)
        try:
            is_selected = programs.matches(cel_device(device.device, device.driver))
        except cel.EvaluationError as error:
            detail = (
                f"CEL evaluation error in selectedDevices {selection.name} for device {device.device.name}: {error}"
            )
            raise Problem([fielderror.internal(at, detail)]) from None
        if is_selected:
            charges[selection.name] = _ONE
    return charges


def largest_charge(
    policy: QueueingPolicy, device_class: str, devices: Iterable[Located], *, at: Path
) -> dict[str, quantity.Quantity]:
    """Return the largest charge of one of some devices; while there are none, of any device of the class."""
    charges: dict[str, quantity.Quantity] | None = None
    for device in devices:
        own = charge(policy, device_class, device, at=at)
        charges = own if charges is None else resourcelists.merge(charges, own, resourcelists.largest)
    return {each.name: _ONE for each in policy.selections(device_class)} if charges is None else charges


def class_charge(
    policy: QueueingPolicy, device_class: str, objects: DeviceObjects, *, at: Path
) -> dict[str, quantity.Quantity]:
    """Return the largest charge of one device of a class. Raises Problem."""
    if not policy.selections(device_class):
        return {}
    programs = compile_class(device_class, objects, at)
    devices = located(objects, device_class=programs, request=Programs(()), at=at)
    return largest_charge(policy, device_class, devices, at=at)
