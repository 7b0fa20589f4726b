"""Kinds with their groups and versions, and their Python types on the wire."""

from collections.abc import Mapping
from typing import Final

import msgspec

from drachma import errors
from drachma.api import (
    certificatesigningrequest,
    clusterrole,
    compositepodgroup,
    configmap,
    controllerrevision,
    cronjob,
    csidriver,
    csinode,
    daemonset,
    deployment,
    deviceclass,
    devicetaintrule,
    event,
    horizontalpodautoscaler,
    job,
    lease,
    limitrange,
    meta,
    namespace,
    node,
    persistentvolume,
    persistentvolumeclaim,
    pod,
    poddisruptionbudget,
    podgroup,
    replicaset,
    replicationcontroller,
    resourceclaim,
    resourceclaimtemplate,
    resourcepoolstatusrequest,
    resourcequota,
    resourceslice,
    secret,
    service,
    serviceaccount,
    statefulset,
    storageclass,
    v1alpha3,
    v1beta1,
    validatingadmissionpolicy,
    volumeattachment,
)
from drachma.api.v1alpha2 import parameters as alpha_parameters
from drachma.api.v1alpha2 import resourceclaim as alpha_claim
from drachma.api.v1alpha2 import resourceclaimtemplate as alpha_template
from drachma.api.v1alpha2 import resourceclass as alpha_class
from drachma.api.v1alpha2 import resourceslice as alpha_slice

RESOURCE_GROUP: Final = "resource.k8s.io"


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind. ``model`` is its form in memory; ``shapes`` has the wire forms of versions that differ from it."""

    group: str
    model: type[meta.Object]
    plural: str
    versions: tuple[str, ...] = ("v1",)
    namespaced: bool = True
    complete: bool = False
    optional: bool = False
    """True if a cluster may not serve the kind; then it has no objects."""
    shapes: Mapping[str, type[meta.Object]] = {}

    @property
    def name(self) -> str:
        return self.model.__name__

    @property
    def api_versions(self) -> tuple[str, ...]:
        """``group/version`` of every served version, the newest first."""
        return tuple(f"{self.group}/{version}" if self.group else version for version in self.versions)

    def shape(self, api_version: str) -> type[meta.Object]:
        """Return the Python type of the kind's wire form in a served version."""
        return self.shapes.get(api_version.rpartition("/")[2], self.model)


_VERSIONS = ("v1", "v1beta2", "v1beta1", "v1alpha3")


def _first_alpha(model: type[meta.Object], plural: str, *, namespaced: bool) -> Kind:
    versions = ("v1alpha2",)
    return Kind(
        group=RESOURCE_GROUP, model=model, plural=plural, versions=versions, namespaced=namespaced, complete=True
    )


_FIRST_ALPHA = (
    _first_alpha(alpha_class.ResourceClass, "resourceclasses", namespaced=False),
    _first_alpha(alpha_claim.ResourceClaim, "resourceclaims", namespaced=True),
    _first_alpha(alpha_template.ResourceClaimTemplate, "resourceclaimtemplates", namespaced=True),
    _first_alpha(alpha_parameters.ResourceClaimParameters, "resourceclaimparameters", namespaced=True),
    _first_alpha(alpha_parameters.ResourceClassParameters, "resourceclassparameters", namespaced=False),
    _first_alpha(alpha_slice.NodeResourceSlice, "noderesourceslices", namespaced=False),
    _first_alpha(alpha_slice.ResourceSlice, "resourceslices", namespaced=False),
)

KINDS: Final[tuple[Kind, ...]] = (
    Kind(
        group=RESOURCE_GROUP,
        model=deviceclass.DeviceClass,
        plural="deviceclasses",
        versions=_VERSIONS,
        namespaced=False,
        complete=True,
    ),
    Kind(
        group=RESOURCE_GROUP,
        model=resourceclaim.ResourceClaim,
        plural="resourceclaims",
        versions=_VERSIONS,
        complete=True,
        shapes={"v1beta1": v1beta1.ResourceClaim, "v1alpha3": v1beta1.ResourceClaim},
    ),
    Kind(
        group=RESOURCE_GROUP,
        model=resourceclaimtemplate.ResourceClaimTemplate,
        plural="resourceclaimtemplates",
        versions=_VERSIONS,
        complete=True,
        shapes={"v1beta1": v1beta1.ResourceClaimTemplate, "v1alpha3": v1beta1.ResourceClaimTemplate},
    ),
    Kind(
        group=RESOURCE_GROUP,
        model=resourceslice.ResourceSlice,
        plural="resourceslices",
        versions=_VERSIONS,
        namespaced=False,
        complete=True,
        shapes={"v1beta1": v1beta1.ResourceSlice, "v1alpha3": v1alpha3.ResourceSlice},
    ),
    Kind(
        group=RESOURCE_GROUP,
        model=devicetaintrule.DeviceTaintRule,
        plural="devicetaintrules",
        versions=("v1", "v1beta2", "v1alpha3"),
        namespaced=False,
        complete=True,
        optional=True,
    ),
    *_FIRST_ALPHA,
    Kind(
        group=RESOURCE_GROUP,
        model=resourcepoolstatusrequest.ResourcePoolStatusRequest,
        plural="resourcepoolstatusrequests",
        versions=("v1alpha3",),
        namespaced=False,
        optional=True,
    ),
    Kind(group="", model=pod.Pod, plural="pods"),
    Kind(group="", model=node.Node, plural="nodes", namespaced=False),
    Kind(group="", model=namespace.Namespace, plural="namespaces", namespaced=False),
    Kind(group="", model=resourcequota.ResourceQuota, plural="resourcequotas", complete=True),
    Kind(group="", model=limitrange.LimitRange, plural="limitranges"),
    Kind(group="", model=persistentvolume.PersistentVolume, plural="persistentvolumes", namespaced=False),
    Kind(group="", model=persistentvolumeclaim.PersistentVolumeClaim, plural="persistentvolumeclaims"),
    Kind(group="", model=replicationcontroller.ReplicationController, plural="replicationcontrollers"),
    Kind(group="", model=configmap.ConfigMap, plural="configmaps"),
    Kind(group="", model=secret.Secret, plural="secrets"),
    Kind(group="", model=service.Service, plural="services"),
    Kind(group="", model=serviceaccount.ServiceAccount, plural="serviceaccounts"),
    Kind(group="", model=event.Event, plural="events"),
    Kind(group="coordination.k8s.io", model=lease.Lease, plural="leases"),
    Kind(group="apps", model=controllerrevision.ControllerRevision, plural="controllerrevisions"),
    Kind(group="apps", model=daemonset.DaemonSet, plural="daemonsets"),
    Kind(group="apps", model=deployment.Deployment, plural="deployments"),
    Kind(group="apps", model=replicaset.ReplicaSet, plural="replicasets"),
    Kind(group="apps", model=statefulset.StatefulSet, plural="statefulsets"),
    Kind(
        group="autoscaling",
        model=horizontalpodautoscaler.HorizontalPodAutoscaler,
        plural="horizontalpodautoscalers",
        versions=("v2",),
    ),
    Kind(group="batch", model=cronjob.CronJob, plural="cronjobs"),
    Kind(group="batch", model=job.Job, plural="jobs"),
    Kind(
        group="admissionregistration.k8s.io",
        model=validatingadmissionpolicy.ValidatingAdmissionPolicy,
        plural="validatingadmissionpolicies",
        namespaced=False,
    ),
    Kind(
        group="certificates.k8s.io",
        model=certificatesigningrequest.CertificateSigningRequest,
        plural="certificatesigningrequests",
        namespaced=False,
    ),
    Kind(group="storage.k8s.io", model=storageclass.StorageClass, plural="storageclasses", namespaced=False),
    Kind(group="storage.k8s.io", model=csinode.CSINode, plural="csinodes", namespaced=False),
    Kind(group="storage.k8s.io", model=csidriver.CSIDriver, plural="csidrivers", namespaced=False),
    Kind(group="storage.k8s.io", model=volumeattachment.VolumeAttachment, plural="volumeattachments", namespaced=False),
    Kind(group="policy", model=poddisruptionbudget.PodDisruptionBudget, plural="poddisruptionbudgets"),
    Kind(
        group="scheduling.k8s.io",
        model=podgroup.PodGroup,
        plural="podgroups",
        versions=("v1beta1", "v1alpha3"),
        optional=True,
    ),
    Kind(
        group="scheduling.k8s.io",
        model=compositepodgroup.CompositePodGroup,
        plural="compositepodgroups",
        versions=("v1alpha3",),
        optional=True,
    ),
    Kind(group="rbac.authorization.k8s.io", model=clusterrole.ClusterRole, plural="clusterroles", namespaced=False),
)

_BY_NAME = {(api_version, kind.name): kind for kind in KINDS for api_version in kind.api_versions}
_BY_MODEL = {kind.model: kind for kind in KINDS}


def find(api_version: str, name: str) -> Kind:
    """Return the kind of a name and version. Raises DecodeError with the alternatives."""
    kind = _BY_NAME.get((api_version, name))
    if kind is not None:
        return kind
    elsewhere = [served for served, kind_name in _BY_NAME if kind_name == name]
    if elsewhere:
        raise errors.DecodeError(f"kind {name} does not exist in {api_version}: it is served in {', '.join(elsewhere)}")
    names = ", ".join(sorted({kind_name for _, kind_name in _BY_NAME}))
    raise errors.DecodeError(f"unknown kind {name} in {api_version}: known kinds are {names}")


def has(model: type[meta.Object]) -> bool:
    """Return True if the struct is the form in memory of a kind, not another view."""
    return model in _BY_MODEL


def of(model: type[meta.Object]) -> Kind:
    """Return the kind whose form in memory is ``model``."""
    return _BY_MODEL[model]
