"""The kinds that every application serves."""

from typing import Final

from drachma.api import gates as feature
from drachma.server.kinds.admissionregistration import (
    mutatingadmissionpolicy,
    policybinding,
    validatingadmissionpolicy,
    webhookconfiguration,
)
from drachma.server.kinds.apiextensions import customresourcedefinition
from drachma.server.kinds.apps import controllerrevision, daemonset, deployment, replicaset, statefulset
from drachma.server.kinds.authentication import selfsubjectreview, tokenreview
from drachma.server.kinds.authorization import reviewtypes
from drachma.server.kinds.autoscaling import horizontalpodautoscaler
from drachma.server.kinds.batch import cronjob, job
from drachma.server.kinds.certificates import certificatesigningrequest
from drachma.server.kinds.coordination import lease
from drachma.server.kinds.core import (
    configmap,
    endpoints,
    event,
    limitrange,
    namespace,
    node,
    persistentvolume,
    persistentvolumeclaim,
    pod,
    podtemplate,
    replicationcontroller,
    resourcequota,
    secret,
    service,
    serviceaccount,
)
from drachma.server.kinds.discovery import endpointslice
from drachma.server.kinds.events import event as newer_event
from drachma.server.kinds.flowcontrol import flowschema, prioritylevelconfiguration
from drachma.server.kinds.networking import ingress, ingressclass, ipaddress, networkpolicy
from drachma.server.kinds.node import runtimeclass
from drachma.server.kinds.policy import poddisruptionbudget
from drachma.server.kinds.rbac import clusterrole, clusterrolebinding, role, rolebinding
from drachma.server.kinds.resource import (
    deviceclass,
    devicetaintrule,
    resourceclaim,
    resourceclaimtemplate,
    resourcepoolstatusrequest,
    resourceslice,
)
from drachma.server.kinds.resource.v1alpha2 import parameters as alpha_parameters
from drachma.server.kinds.resource.v1alpha2 import resourceclaim as alpha_claim
from drachma.server.kinds.resource.v1alpha2 import resourceclass as alpha_class
from drachma.server.kinds.resource.v1alpha2 import resourceslice as alpha_slice
from drachma.server.kinds.scheduling import podgroup, priorityclass, workload
from drachma.server.kinds.storage import csidriver, csinode, csistoragecapacity, storageclass, volumeattachment
from drachma.server.surface.apisurface import Kind

KINDS: Final[tuple[Kind, ...]] = (
    certificatesigningrequest.KIND,
    clusterrole.KIND,
    clusterrolebinding.KIND,
    configmap.KIND,
    customresourcedefinition.KIND,
    controllerrevision.KIND,
    cronjob.KIND,
    csidriver.KIND,
    csinode.KIND,
    csistoragecapacity.KIND,
    daemonset.KIND,
    deployment.KIND,
    deviceclass.KIND,
    devicetaintrule.KIND,
    endpoints.KIND,
    endpointslice.KIND,
    event.KIND,
    newer_event.KIND,
    flowschema.KIND,
    horizontalpodautoscaler.KIND,
    ingress.KIND,
    ingressclass.KIND,
    ipaddress.KIND,
    job.KIND,
    lease.KIND,
    limitrange.KIND,
    mutatingadmissionpolicy.KIND,
    namespace.KIND,
    networkpolicy.KIND,
    node.KIND,
    persistentvolume.KIND,
    persistentvolumeclaim.KIND,
    pod.KIND,
    podgroup.KIND,
    podtemplate.KIND,
    poddisruptionbudget.KIND,
    policybinding.MUTATING,
    policybinding.VALIDATING,
    priorityclass.KIND,
    prioritylevelconfiguration.KIND,
    replicaset.KIND,
    replicationcontroller.KIND,
    resourceclaim.KIND,
    resourceclaimtemplate.KIND,
    resourcepoolstatusrequest.KIND,
    resourcequota.KIND,
    resourceslice.KIND,
    role.KIND,
    rolebinding.KIND,
    runtimeclass.KIND,
    secret.KIND,
    service.KIND,
    selfsubjectreview.KIND,
    serviceaccount.KIND,
    statefulset.KIND,
    storageclass.KIND,
    tokenreview.KIND,
    validatingadmissionpolicy.KIND,
    volumeattachment.KIND,
    webhookconfiguration.MUTATING,
    webhookconfiguration.VALIDATING,
    workload.KIND,
    *reviewtypes.KINDS,
)

FIRST_ALPHA: Final[tuple[Kind, ...]] = (
    alpha_class.KIND,
    alpha_claim.CLAIM,
    alpha_claim.TEMPLATE,
    alpha_parameters.CLAIM,
    alpha_parameters.CLASS,
    alpha_slice.NODE_SLICE,
    alpha_slice.SLICE,
)
"""Kinds that upstream has not had for long."""

_ALL: Final = (*KINDS, *FIRST_ALPHA)
_KEYS_OF: Final = {
    name: tuple(dict.fromkeys(kind.key for kind in _ALL if kind.group_resource == name))
    for name in {kind.group_resource for kind in _ALL}
}
_VERSIONS: Final = {
    name: frozenset(version for kind in _ALL if kind.group_resource == name for version in kind.versions)
    for name in _KEYS_OF
}
_KEYS: Final = {(kind.group, version, kind.plural): kind.key for kind in _ALL for version in kind.versions}


def stored_keys(group_resource: str) -> tuple[str, ...]:
    """Return the keys under which all versions of a built-in resource are stored, whether they are served or not."""
    return _KEYS_OF[group_resource]


def versions(group_resource: str) -> frozenset[str]:
    """Return all versions of a resource, whether they are served or not; none if it is not built in."""
    return _VERSIONS.get(group_resource, frozenset())


def stored_key(group: str, version: str, plural: str) -> str | None:
    """Return the key under which a version of a resource is stored, or None if it is not built in."""
    return _KEYS.get((group, version, plural))


def served(gates: feature.Gates) -> tuple[Kind, ...]:
    """The kinds that an application serves with these features."""
    return (*KINDS, *FIRST_ALPHA) if gates.on(feature.Gate.FIRST_ALPHA) else KINDS
