"""Pinned templates: a template that was deleted and made anew must not give pods more than was counted.

Templates cannot be changed, but one of the same name may come in their place while a workload has quota, and claims
of pods that are still to be made would be made from that.
"""

from __future__ import annotations

from msgspec import structs

from drachma.queueing import amounts
from drachma.queueing.configuration.gates import Gates
from drachma.queueing.configuration.queueingpolicy import QueueingPolicy, Templates
from drachma.queueing.devices import deviceaccount, devicerequests
from drachma.queueing.devices.devicemappings import DeviceMappings
from drachma.queueing.devices.deviceobjects import DeviceObjects
from drachma.queueing.kinds import workload
from drachma.values import quotation


def problem(
    of: workload.Workload, objects: DeviceObjects, mappings: DeviceMappings, *, gates: Gates, policy: QueueingPolicy
) -> str | None:
    """Why a workload with quota cannot go on with the templates that there are now; None if it can."""
    account = deviceaccount.of(of)
    if account is None:
        return None
    others = []
    for name, uid in account.templates.items():
        template = objects.templates.get((of.metadata.namespace, name))
        if template is not None and template.metadata.uid != uid:
            others.append(name)
    if not others:
        return None
    noun = "ResourceClaimTemplates" if len(others) > 1 else "ResourceClaimTemplate"
    subject = f"{noun} {', '.join(map(quotation.quote, others))} recreated since it was counted"
    counted = devicerequests.count(
        of, objects, mappings, gates=gates, policy=structs.replace(policy, templates=Templates.PINNED)
    )
    if isinstance(counted, devicerequests.Refusal):
        return f"{subject}: {counted.message}"
    for pod_set, charges in counted.settled.items():
        agreed = account.pod_sets.get(pod_set, deviceaccount.PodSetAccount()).resources()
        for name, amount in charges.items():
            now = amounts.requested(name, amount)
            before = agreed[name].devices if name in agreed else 0
            if now > before:
                had = amounts.as_quantity(name, before)
                return f"{subject}: pod set {pod_set} needs {amount} of {name} per pod and has {had}"
    return None
