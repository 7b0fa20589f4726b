"""Objects that tests of controllers need, ready to be created."""

from typing import Any

from drachma.api import deviceclass, meta, pod, resourceclaim, resourceclaimtemplate, scheme
from drachma.testing import PodBuilder, claim, claim_template, device_class, subrequest
from drachma.testing import pod as build_pod

DRIVER = "gpu.example.com"
CONTAINER = pod.Container(name="main", image="registry.example/pause:3.10")


def a_class() -> deviceclass.DeviceClass:
    return device_class(DRIVER).build()


def a_template(name: str = "t", **request: Any) -> resourceclaimtemplate.ResourceClaimTemplate:
    return claim_template(name).request("gpu", device_class=DRIVER, **request).build()


def a_prioritized_template(name: str = "t") -> resourceclaimtemplate.ResourceClaimTemplate:
    return claim_template(name).first_available("gpu", subrequest("big", DRIVER), subrequest("small", DRIVER)).build()


def a_pod(name: str = "p", **entries: str) -> PodBuilder:
    """A pod whose entries come from these templates."""
    builder = build_pod(name).spec(containers=(CONTAINER,))
    for entry, template in entries.items():
        builder = builder.claim(entry, template=template)
    return builder


def user(name: str, of: str = "c") -> PodBuilder:
    """A pod that uses a claim by its name."""
    return a_pod(name).claim("gpu", claim=of)


def a_claim(name: str = "c") -> resourceclaim.ResourceClaim:
    return claim(name).request("gpu", device_class=DRIVER).finalizer("resource.kubernetes.io/delete-protection").build()


def allocation(device: str = "gpu-0", **fields: Any) -> resourceclaim.AllocationResult:
    result = resourceclaim.DeviceRequestAllocationResult(
        request="gpu", driver=DRIVER, pool="pool", device=device, **fields
    )
    return resourceclaim.AllocationResult(devices=resourceclaim.DeviceAllocationResult(results=(result,)))


def consumers(*pods: pod.Pod) -> tuple[resourceclaim.ResourceClaimConsumerReference, ...]:
    """References to pods."""
    return tuple(
        resourceclaim.ResourceClaimConsumerReference(resource="pods", name=p.metadata.name, uid=p.metadata.uid)
        for p in pods
    )


def controlled_by(owner: meta.Object, *, blocks: bool | None = None) -> tuple[meta.OwnerReference, ...]:
    """A reference to the owner that controls an object."""
    return (owned_by(owner, controller=True, block_owner_deletion=blocks),)


def owned_by(owner: meta.Object, **fields: Any) -> meta.OwnerReference:
    """A reference to an owner."""
    kind = scheme.of(type(owner))
    return meta.OwnerReference(
        api_version=kind.api_versions[0],
        kind=kind.name,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        **fields,
    )
