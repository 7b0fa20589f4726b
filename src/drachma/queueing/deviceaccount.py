"""The device account of a workload: what was agreed about its devices when it was admitted, in an annotation.

``status.admission`` says what all pods of a set use together, and nothing of which part of it devices are. That is
needed to settle it (:mod:`drachma.queueing.settlement`), and to tell whether a template is still the one that was
counted. The account is written before the status that it belongs to, on the same version of the workload, and does
not change while quota is reserved. A workload without one is counted as Kueue counts it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import structs

from drachma.api import hooks, pod
from drachma.queueing import amounts
from drachma.queueing.devicerequests import DeviceRequests
from drachma.queueing.kinds import workload
from drachma.values import quantity

ANNOTATION: Final = "queueing.drachma.dev/device-account"


class PodSetAccount(msgspec.Struct, frozen=True):
    """Of the resources that devices are charged to: what one pod was admitted with, by where it comes from."""

    devices: pod.ResourceList = {}
    beside: pod.ResourceList = {}
    """What the pod asks for itself."""

    def resources(self) -> dict[str, tuple[int, int]]:
        """Of each resource: what devices of a pod, and what the pod itself, count for."""
        return {
            name: (amounts.requested(name, amount), amounts.requested(name, self.beside.get(name, _ZERO)))
            for name, amount in self.devices.items()
        }


class DeviceAccount(msgspec.Struct, frozen=True, rename="camel"):
    """The whole account."""

    pod_sets: Mapping[str, PodSetAccount] = {}
    templates: Mapping[str, str] = {}
    """The uids of templates that must not be others, by name."""


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


def opened(admitted: workload.Workload, devices: DeviceRequests | None) -> workload.Workload:
    """A workload that is about to be admitted, with an account if there is anything to settle or to hold on to.

    An account of an admission before is closed.
    """
    annotations = {name: text for name, text in admitted.metadata.annotations.items() if name != ANNOTATION}
    if devices is not None and (devices.settled or devices.templates):
        annotations[ANNOTATION] = _text(admitted, devices)
    if annotations == dict(admitted.metadata.annotations):
        return admitted
    return structs.replace(admitted, metadata=structs.replace(admitted.metadata, annotations=annotations))


def _text(admitted: workload.Workload, devices: DeviceRequests) -> str:
    admission = admitted.status.admission
    assert admission is not None, "an account belongs to an admission"
    pod_sets: dict[str, PodSetAccount] = {}
    for assignment in admission.pod_set_assignments:
        charges = devices.settled.get(assignment.name)
        count = assignment.count or 0
        if charges is None or not count:
            continue
        beside: dict[str, quantity.Quantity] = {}
        for name, amount in charges.items():
            whole = amounts.requested(name, assignment.resource_usage.get(name, _ZERO)) // count
            rest = whole - amounts.requested(name, amount)
            if rest > 0:
                beside[name] = amounts.as_quantity(name, rest)
        pod_sets[assignment.name] = PodSetAccount(charges, beside)
    account = DeviceAccount(pod_sets, devices.templates)
    document = msgspec.to_builtins(account, enc_hook=hooks.encode)
    return msgspec.json.encode({name: part for name, part in document.items() if part}, order="sorted").decode()
