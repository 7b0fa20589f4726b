"""All controllers by upstream's names, their requirements, and selection of some by ``--controllers``.

Used by code that composes a process: ``drachma controllers`` and the embedded control plane.
"""

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from drachma import errors
from drachma.api import gates as features
from drachma.client import transactions
from drachma.controllers import (
    bootstraptokens,
    certificates,
    clusterroleaggregation,
    cronjob,
    daemonset,
    deployment,
    devicetaints,
    disruption,
    endpoints,
    garbagecollector,
    job,
    namespace,
    nodelifecycle,
    nodettl,
    persistentvolume,
    podautoscaling,
    podgc,
    podgroupprotection,
    poolstatus,
    replicaset,
    resourceclaim,
    resourcequota,
    serviceaccount,
    statefulset,
    structured,
    tainteviction,
    validatingadmissionpolicy,
    volumeprotection,
)
from drachma.runtime import Surroundings, controller

Make: TypeAlias = Callable[[Surroundings], controller.Controller]


_SYSTEM: Final = "system:"
_ACCOUNTS: Final = "system:serviceaccount:kube-system:"
_CERTIFICATES: Final = "certificate-controller"


class Descriptor(NamedTuple):
    """One controller: its name, its factory, and the feature gate that it needs.

    ``account`` is the service account that it acts as, under upstream's name, if it differs from its own name.
    ``is_possible`` returns True if a process has what the controller needs.
    """

    name: str
    make: Make
    gate: features.Gate | None = None
    account: str = ""
    is_possible: Callable[[Surroundings], bool] = lambda _: True

    @property
    def user(self) -> str:
        """User that the controller acts as."""
        name = self.account or self.name
        return name if name.startswith(_SYSTEM) else f"{_ACCOUNTS}{name}"


def _namespace_controller(surroundings: Surroundings) -> namespace.NamespaceController:
    """Make the controller. In the process of the only API server it need not wait for other servers to settle."""
    is_alone = transactions.offered(surroundings.client) is not None
    if is_alone:
        return namespace.NamespaceController(surroundings, settling_seconds=0)
    return namespace.NamespaceController(surroundings)


ALL: Final = (
    Descriptor("certificatesigningrequest-approving-controller", certificates.RequestApproval, account=_CERTIFICATES),
    Descriptor("certificatesigningrequest-cleaner-controller", certificates.RequestCleaning, account=_CERTIFICATES),
    Descriptor(
        "certificatesigningrequest-signing-controller",
        certificates.RequestSigning,
        account=_CERTIFICATES,
        is_possible=lambda surroundings: surroundings.credentials.signing is not None,
    ),
    Descriptor("clusterrole-aggregation-controller", clusterroleaggregation.ClusterRoleAggregation),
    Descriptor("cronjob-controller", cronjob.CronJobController),
    Descriptor("daemonset-controller", daemonset.DaemonSetController, account="daemon-set-controller"),
    Descriptor("deployment-controller", deployment.DeploymentController),
    Descriptor("device-taint-eviction-controller", devicetaints.DeviceTaintEviction, gate=features.Gate.DEVICE_TAINTS),
    Descriptor("disruption-controller", disruption.DisruptionController),
    Descriptor("endpoints-controller", endpoints.endpoints_controller, account="endpoint-controller"),
    Descriptor("endpointslice-controller", endpoints.endpoint_slice_controller),
    Descriptor("garbage-collector-controller", garbagecollector.GarbageCollector, account="generic-garbage-collector"),
    Descriptor(
        "horizontal-pod-autoscaler-controller",
        podautoscaling.HorizontalPodAutoscaling,
        account="horizontal-pod-autoscaler",
    ),
    Descriptor("job-controller", job.JobController),
    Descriptor("namespace-controller", _namespace_controller),
    Descriptor("node-lifecycle-controller", nodelifecycle.NodeLifecycle, account="node-controller"),
    Descriptor(
        "persistentvolume-binder-controller",
        persistentvolume.PersistentVolumeBinder,
        account="persistent-volume-binder",
    ),
    Descriptor(
        "persistentvolume-protection-controller",
        volumeprotection.VolumeProtection,
        account="pv-protection-controller",
    ),
    Descriptor(
        "persistentvolumeclaim-protection-controller",
        volumeprotection.VolumeClaimProtection,
        account="pvc-protection-controller",
    ),
    Descriptor("pod-garbage-collector-controller", podgc.PodGarbageCollector, account="pod-garbage-collector"),
    Descriptor(
        "podgroup-protection-controller",
        podgroupprotection.PodGroupProtection,
        gate=features.Gate.GENERIC_WORKLOAD,
    ),
    Descriptor("replicaset-controller", replicaset.ReplicaSetController),
    Descriptor("replicationcontroller-controller", replicaset.ReplicationManager, account="replication-controller"),
    Descriptor(
        "resourceclaim-controller",
        resourceclaim.ResourceClaimController,
        gate=features.Gate.CORE,
        account="resource-claim-controller",
    ),
    Descriptor(
        "resourcepoolstatusrequest-controller",
        poolstatus.ResourcePoolStatusController,
        gate=features.Gate.RESOURCE_POOL_STATUS,
    ),
    Descriptor("resourcequota-controller", resourcequota.ResourceQuotaController),
    Descriptor(
        "root-ca-certificate-publisher-controller",
        serviceaccount.RootCertificatePublisher,
        account="root-ca-cert-publisher",
        is_possible=lambda surroundings: bool(surroundings.credentials.authority),
    ),
    Descriptor(
        "serviceaccount-controller", serviceaccount.ServiceAccountController, account="service-account-controller"
    ),
    Descriptor(
        "serviceaccount-token-controller",
        serviceaccount.TokenController,
        account="system:kube-controller-manager",
        is_possible=lambda surroundings: surroundings.credentials.mint is not None,
    ),
    Descriptor("statefulset-controller", statefulset.StatefulSetController),
    Descriptor("structured-parameters-controller", structured.StructuredParameters, gate=features.Gate.FIRST_ALPHA),
    Descriptor("taint-eviction-controller", tainteviction.NodeTaintEviction, account="node-controller"),
    Descriptor("token-cleaner-controller", bootstraptokens.TokenCleaner, account="token-cleaner"),
    Descriptor("ttl-after-finished-controller", job.TimeToLive),
    Descriptor("ttl-controller", nodettl.NodeTimeToLive),
    Descriptor("validatingadmissionpolicy-status-controller", validatingadmissionpolicy.PolicyStatusController),
)


def chosen(text: str = "*", *, gates: features.Gates = features.ALL) -> tuple[Descriptor, ...]:
    """Return the controllers of a list: ``*`` for all, ``name`` for one, ``-name`` to exclude one.

    Controllers whose feature is off are left out. Raises InvalidValueError for unknown names.
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
