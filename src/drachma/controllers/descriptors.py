"""All controllers by upstream's names, what each needs, and the choice of some of them as ``--controllers`` writes it.

Who composes a process reads it: ``drachma controllers`` and the embedded control plane.
"""

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from drachma import errors
from drachma.api import gates as features
from drachma.controllers import (
    deployment,
    devicetaints,
    disruption,
    garbagecollector,
    job,
    namespace,
    nodelifecycle,
    podgc,
    replicaset,
    resourceclaim,
    resourcequota,
    serviceaccount,
    tainteviction,
)
from drachma.runtime import Surroundings, controller

Make: TypeAlias = Callable[[Surroundings], controller.Controller]


class Descriptor(NamedTuple):
    """One controller: its name, how it is made, and the feature without which it has nothing to do.

    ``is_possible`` says whether a process has what it needs.
    """

    name: str
    make: Make
    gate: features.Gate | None = None
    is_possible: Callable[[Surroundings], bool] = lambda _: True


ALL: Final = (
    Descriptor("deployment-controller", deployment.DeploymentController),
    Descriptor("device-taint-eviction-controller", devicetaints.DeviceTaintEviction, gate=features.Gate.DEVICE_TAINTS),
    Descriptor("disruption-controller", disruption.DisruptionController),
    Descriptor("garbage-collector-controller", garbagecollector.GarbageCollector),
    Descriptor("job-controller", job.JobController),
    Descriptor("namespace-controller", namespace.NamespaceController),
    Descriptor("node-lifecycle-controller", nodelifecycle.NodeLifecycle),
    Descriptor("pod-garbage-collector-controller", podgc.PodGarbageCollector),
    Descriptor("replicaset-controller", replicaset.ReplicaSetController),
    Descriptor("resourceclaim-controller", resourceclaim.ResourceClaimController, gate=features.Gate.CORE),
    Descriptor("resourcequota-controller", resourcequota.ResourceQuotaController),
    Descriptor(
        "root-ca-certificate-publisher-controller",
        serviceaccount.RootCertificatePublisher,
        is_possible=lambda surroundings: bool(surroundings.credentials.authority),
    ),
    Descriptor("serviceaccount-controller", serviceaccount.ServiceAccountController),
    Descriptor(
        "serviceaccount-token-controller",
        serviceaccount.TokenController,
        is_possible=lambda surroundings: surroundings.credentials.mint is not None,
    ),
    Descriptor("taint-eviction-controller", tainteviction.NodeTaintEviction),
    Descriptor("ttl-after-finished-controller", job.TimeToLive),
)


def chosen(text: str = "*", *, gates: features.Gates = features.ALL) -> tuple[Descriptor, ...]:
    """The controllers that a list names: ``*`` for all, ``name`` for one, ``-name`` for not this one.

    Those whose feature is switched off are left out. InvalidValueError for names that are not known.
    """
    entries = {entry.strip() for entry in text.split(",") if entry.strip()}
    names = [descriptor.name for descriptor in ALL]
    unknown = sorted({entry.removeprefix("-") for entry in entries} - {"*", *names})
    if unknown:
        raise errors.InvalidValueError(
            f"controllers {text!r}: {', '.join(unknown)} is not known: there are {', '.join(names)}"
        )
    return tuple(
        descriptor
        for descriptor in ALL
        if (descriptor.name in entries or ("*" in entries and f"-{descriptor.name}" not in entries))
        and (descriptor.gate is None or gates.on(descriptor.gate))
    )
