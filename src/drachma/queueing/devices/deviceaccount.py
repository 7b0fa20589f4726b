"""The device account of a workload: what was agreed about its devices when it was admitted, in an annotation.

``status.admission`` says what all pods of a set use together, and nothing of which part of it devices are. That is
needed to settle it (:mod:`workloads.settlement`), and to tell whether a template is still the one that was
counted. The account is written before the status that it belongs to, on the same version of the workload, and does
not change while quota is reserved. A workload without one is counted as Kueue counts it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec
from msgspec import structs

from drachma.api import hooks, pod
from drachma.queueing import amounts, resourcelists
from drachma.queueing.devices.devicerequests import DeviceRequests
from drachma.queueing.kinds import workload
from drachma.values import quantity

ANNOTATION: Final = "queueing.drachma.dev/device-account"


class Agreed(NamedTuple):
    """What was agreed about one resource of a pod set."""

    devices: int
    """What the devices of one pod count for at most."""
    beside: int
    """What one pod asks for itself."""
    once: int
    """What claims by name count for that the workload pays for, whatever the number of pods."""


class PodSetAccount(msgspec.Struct, frozen=True, omit_defaults=True):
    """The same of all resources that devices are charged to."""

    devices: pod.ResourceList = {}
    beside: pod.ResourceList = {}
    once: pod.ResourceList = {}

    def resources(self) -> dict[str, Agreed]:
        """By resource, in the amounts of quota."""

        def amount(of: pod.ResourceList, name: str) -> int:
            return amounts.requested(name, of.get(name, _ZERO))

        return {
            name: Agreed(amount(self.devices, name), amount(self.beside, name), amount(self.once, name))
            for name in {**self.devices, **self.once}
        }


class ClaimShare(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A claim that pods use by name, and what is paid for it."""

    uid: str
    charge: pod.ResourceList
    flavors: Mapping[str, str] = {}
    is_paid: bool = False
    """Whether it is part of what this workload was admitted with; otherwise another paid then."""


class DeviceAccount(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The whole account."""

    pod_sets: Mapping[str, PodSetAccount] = {}
    templates: Mapping[str, str] = {}
    """The uids of templates that must not be others, by name."""
    claims: Mapping[str, ClaimShare] = {}


_ZERO: Final = quantity.Quantity.from_int(0)
_DECODER: Final = msgspec.json.Decoder(DeviceAccount, dec_hook=hooks.decode)


def of(owner: workload.Workload) -> DeviceAccount | None:
    """The account of a workload that has one. One that nobody of us wrote, so that it cannot be read, is none."""
    text = owner.metadata.annotations.get(ANNOTATION)
    if text is None:
        return None
    try:
        return _DECODER.decode(text)
    except (msgspec.MsgspecError, ValueError):
        return None


def opened(
    admitted: workload.Workload, devices: DeviceRequests | None, *, paid: Mapping[str, ClaimShare]
) -> workload.Workload:
    """A workload that is about to be admitted, with an account if there is anything to settle or to hold on to.

    ``devices`` are those that it pays for, ``paid`` is what others pay for. An earlier admission's account is closed.
    """
    annotations = {name: text for name, text in admitted.metadata.annotations.items() if name != ANNOTATION}
    shared = {name: structs.replace(share, is_paid=False) for name, share in paid.items()}
    if shared or (devices is not None and (devices.settled or devices.templates or devices.named)):
        annotations[ANNOTATION] = _text(admitted, devices or DeviceRequests(), shared)
    if annotations == dict(admitted.metadata.annotations):
        return admitted
    return structs.replace(admitted, metadata=structs.replace(admitted.metadata, annotations=annotations))


def _text(admitted: workload.Workload, devices: DeviceRequests, shared: Mapping[str, ClaimShare]) -> str:
    admission = admitted.status.admission
    assert admission is not None, "an account belongs to an admission"
    pod_sets: dict[str, PodSetAccount] = {}
    claims = dict(shared)
    for assignment in admission.pod_set_assignments:
        once: dict[str, quantity.Quantity] = {}
        for name, named in devices.named.items():
            if named.pod_set == assignment.name:
                flavors = {resource: assignment.flavors.get(resource, "") for resource in named.charge}
                claims[name] = ClaimShare(named.uid, named.charge, flavors, is_paid=True)
                once = resourcelists.merge(once, named.charge, resourcelists.total)
        account = PodSetAccount(devices.settled.get(assignment.name, {}), once=once)
        if assignment.count and account.resources():
            pod_sets[assignment.name] = structs.replace(account, beside=_beside(assignment, account))
    whole = DeviceAccount(pod_sets, devices.templates, claims)
    return msgspec.json.encode(msgspec.to_builtins(whole, enc_hook=hooks.encode), order="sorted").decode()


def _beside(assignment: workload.PodSetAssignment, account: PodSetAccount) -> dict[str, quantity.Quantity]:
    """What is left of the usage of one pod when devices are taken off."""
    beside: dict[str, quantity.Quantity] = {}
    for name, agreed in account.resources().items():
        usage = amounts.requested(name, assignment.resource_usage.get(name, _ZERO)) - agreed.once
        rest = usage // (assignment.count or 1) - agreed.devices
        if rest > 0:
            beside[name] = amounts.as_quantity(name, rest)
    return beside
