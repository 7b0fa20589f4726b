"""The device account of a workload: an annotation with the agreement about its devices at admission.

``status.admission`` has the usage of all pods of a set together, and not the part of it that is for devices. That part
is needed for settlement (:mod:`workloads.settlement`), and to detect a template that has been replaced since it was
counted.
The account is written before the status that it belongs to, on the same version of the workload, and does not change
while quota is reserved. A workload without an account is counted as Kueue counts it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec
from msgspec import structs

from drachma.api import hooks, pod
from drachma.queueing import amounts, resourcelists
from drachma.queueing.configuration.gates import Gates
from drachma.queueing.configuration.queueingpolicy import QueueingPolicy, Templates
from drachma.queueing.devices import requests
from drachma.queueing.devices.mappings import DeviceMappings
from drachma.queueing.devices.objects import DeviceObjects
from drachma.queueing.devices.requests import DeviceRequests
from drachma.queueing.kinds import workload
from drachma.values import quantity, quotation

ANNOTATION: Final = "queueing.drachma.dev/device-account"


class Agreement(NamedTuple):
    """Agreement about one resource of a pod set."""

    devices: int
    """Upper bound of the charge for the devices of one pod."""
    own: int
    """Requests of one pod itself."""
    once: int
    """Charge for shared claims that the workload pays for, for any number of pods."""


class PodSetAccount(msgspec.Struct, frozen=True, omit_defaults=True):
    """Agreement about all resources of a pod set that devices are charged to."""

    devices: pod.ResourceList = {}
    own: pod.ResourceList = msgspec.field(default_factory=dict, name="beside")
    once: pod.ResourceList = {}

    def resources(self) -> dict[str, Agreement]:
        """Return the agreement by resource, in amounts of quota."""

        def amount(resources: pod.ResourceList, name: str) -> int:
            return amounts.requested(name, resources.get(name, _ZERO))

        return {
            name: Agreement(amount(self.devices, name), amount(self.own, name), amount(self.once, name))
            for name in {**self.devices, **self.once}
        }


class ClaimShare(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A claim that pods share, and the charge for it."""

    uid: str
    charge: pod.ResourceList
    flavors: Mapping[str, str] = {}
    is_paid: bool = False
    """True if the charge is part of this workload's admission; otherwise another workload paid then."""
    entry: str = ""
    """Name of the entry that pods have for the claim of their group; empty for a claim that they name."""
    pod_sets: tuple[str, ...] = ()
    """Pod sets that use the claim of a group. The first one pays, unless another workload does."""


class DeviceAccount(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The account of a workload."""

    pod_sets: Mapping[str, PodSetAccount] = {}
    templates: Mapping[str, str] = {}
    """Uids by name of the templates that claims must be created from."""
    claims: Mapping[str, ClaimShare] = {}
    """Shares of claims by name, or by the key of a group's claim."""

    def group_shares(self, pod_set: str) -> dict[str, ClaimShare]:
        """Return the shares of the claims of groups that a pod set uses."""
        return {key: share for key, share in self.claims.items() if pod_set in share.pod_sets}


_ZERO: Final = quantity.Quantity.from_int(0)
_DECODER: Final = msgspec.json.Decoder(DeviceAccount, dec_hook=hooks.decode)


def read(wl: workload.Workload) -> DeviceAccount | None:
    """Return the account of a workload, or None if it has none or one that cannot be decoded."""
    text = wl.metadata.annotations.get(ANNOTATION)
    if text is None:
        return None
    try:
        return _DECODER.decode(text)
    except (msgspec.MsgspecError, ValueError):
        return None


def with_account(
    admitted: workload.Workload, devices: DeviceRequests | None, *, paid: Mapping[str, ClaimShare]
) -> workload.Workload:
    """Return a workload about to be admitted, with an account if its charges are to be settled or its templates pinned.

    ``devices`` are those that it pays for, ``paid`` are the shares that others pay for. The account of an earlier
    admission is removed.
    """
    annotations = {name: text for name, text in admitted.metadata.annotations.items() if name != ANNOTATION}
    shares = {name: structs.replace(share, is_paid=False) for name, share in paid.items()}
    if shares or (devices is not None and (devices.settled or devices.templates or devices.shared)):
        annotations[ANNOTATION] = _text(admitted, devices or DeviceRequests(), shares)
    if annotations == dict(admitted.metadata.annotations):
        return admitted
    return structs.replace(admitted, metadata=structs.replace(admitted.metadata, annotations=annotations))


def _text(admitted: workload.Workload, devices: DeviceRequests, shares: Mapping[str, ClaimShare]) -> str:
    admission = admitted.status.admission
    assert admission is not None, "an account belongs to an admission"
    pod_sets: dict[str, PodSetAccount] = {}
    claims = dict(shares)
    for assignment in admission.pod_set_assignments:
        once: dict[str, quantity.Quantity] = {}
        for name, claim_charge in devices.shared.items():
            if claim_charge.payer == assignment.name:
                flavors = {resource: assignment.flavors.get(resource, "") for resource in claim_charge.charge}
                users = claim_charge.pod_sets if claim_charge.entry else ()
                claims[name] = ClaimShare(
                    claim_charge.uid,
                    claim_charge.charge,
                    flavors,
                    is_paid=True,
                    entry=claim_charge.entry,
                    pod_sets=users,
                )
                once = resourcelists.merge(once, claim_charge.charge, resourcelists.total)
        account = PodSetAccount(devices.settled.get(assignment.name, {}), once=once)
        if assignment.count and account.resources():
            pod_sets[assignment.name] = structs.replace(account, own=_own_requests(assignment, account))
    new_account = DeviceAccount(pod_sets, devices.templates, claims)
    return msgspec.json.encode(msgspec.to_builtins(new_account, enc_hook=hooks.encode), order="sorted").decode()


def _own_requests(assignment: workload.PodSetAssignment, account: PodSetAccount) -> dict[str, quantity.Quantity]:
    """Return the usage of one pod without its devices."""
    own_requests: dict[str, quantity.Quantity] = {}
    for name, agreed in account.resources().items():
        usage = amounts.requested(name, assignment.resource_usage.get(name, _ZERO)) - agreed.once
        own = usage // (assignment.count or 1) - agreed.devices
        if own > 0:
            own_requests[name] = amounts.to_quantity(name, own)
    return own_requests


def template_problem(
    wl: workload.Workload, objects: DeviceObjects, mappings: DeviceMappings, *, gates: Gates, policy: QueueingPolicy
) -> str | None:
    """Return the reason why a workload with quota cannot keep it with the templates that exist now, or None.

    Templates are immutable, but a template may be deleted and created again under its name. Pods that are created
    later would get claims from the new template, which must not request more than was counted.
    """
    account = read(wl)
    if account is None:
        return None
    recreated = []
    for name, uid in account.templates.items():
        template = objects.templates.get((wl.metadata.namespace, name))
        if template is not None and template.metadata.uid != uid:
            recreated.append(name)
    if not recreated:
        return None
    noun = "ResourceClaimTemplates" if len(recreated) > 1 else "ResourceClaimTemplate"
    subject = f"{noun} {', '.join(map(quotation.quote, recreated))} recreated since it was counted"
    now_counted = requests.count(
        wl, objects, mappings, gates=gates, policy=structs.replace(policy, templates=Templates.PINNED)
    )
    if isinstance(now_counted, requests.Refusal):
        return f"{subject}: {now_counted.message}"
    for key, claim_charge in now_counted.shared.items():
        share = account.claims.get(key)
        for name, amount in claim_charge.charge.items():
            had = share.charge.get(name, _ZERO) if share is not None else _ZERO
            if amounts.requested(name, amount) > amounts.requested(name, had):
                return f"{subject}: claim {key} needs {amount} of {name} and has {had}"
    for pod_set, charges in now_counted.settled.items():
        agreed = account.pod_sets.get(pod_set, PodSetAccount()).resources()
        for name, amount in charges.items():
            needed = amounts.requested(name, amount)
            before = agreed[name].devices if name in agreed else 0
            if needed > before:
                had = amounts.to_quantity(name, before)
                return f"{subject}: pod set {pod_set} needs {amount} of {name} per pod and has {had}"
    return None
