"""Records of all built-in kinds."""

from typing import Final

from drachma.api import gates as feature
from drachma.server.kinds import (
    apiregistration,
    apps,
    authentication,
    authorization,
    batch,
    certificatesigningrequest,
    endpointslice,
    events,
    flowcontrol,
    lease,
    networking,
    policy,
    rbac,
    runtimeclass,
    scheduling,
    storage,
)
from drachma.server.kinds.admissionregistration import policies, webhookconfiguration
from drachma.server.kinds.apiextensions import customresourcedefinition
from drachma.server.kinds.autoscaling import horizontalpodautoscaler
from drachma.server.kinds.core import (
    configuration,
    endpoints,
    event,
    limits,
    namespace,
    node,
    pod,
    podtemplate,
    replicationcontroller,
    service,
    serviceaccount,
    volumes,
)
from drachma.server.kinds.resource import alphakinds, devicekinds, resourcepoolstatusrequest
from drachma.server.surface.apisurface import Kind

KINDS: Final[tuple[Kind, ...]] = (
    # core
    configuration.CONFIG_MAP,
    configuration.SECRET,
    endpoints.KIND,
    event.KIND,
    limits.LIMIT_RANGE,
    limits.RESOURCE_QUOTA,
    namespace.KIND,
    node.KIND,
    volumes.PERSISTENT_VOLUME,
    volumes.PERSISTENT_VOLUME_CLAIM,
    pod.KIND,
    podtemplate.KIND,
    replicationcontroller.KIND,
    service.KIND,
    serviceaccount.KIND,
    # admissionregistration.k8s.io
    policies.MUTATING,
    policies.MUTATING_BINDING,
    policies.VALIDATING,
    policies.VALIDATING_BINDING,
    webhookconfiguration.MUTATING,
    webhookconfiguration.VALIDATING,
    # apiextensions.k8s.io
    customresourcedefinition.KIND,
    # apps, autoscaling, batch
    apps.CONTROLLER_REVISION,
    apps.DAEMON_SET,
    apps.DEPLOYMENT,
    apps.REPLICA_SET,
    apps.STATEFUL_SET,
    horizontalpodautoscaler.KIND,
    batch.CRON_JOB,
    batch.JOB,
    # authentication.k8s.io, authorization.k8s.io, certificates.k8s.io, rbac.authorization.k8s.io
    authentication.SELF_SUBJECT_REVIEW,
    authentication.TOKEN_REVIEW,
    *authorization.KINDS,
    apiregistration.KIND,
    certificatesigningrequest.KIND,
    rbac.CLUSTER_ROLE,
    rbac.CLUSTER_ROLE_BINDING,
    rbac.ROLE,
    rbac.ROLE_BINDING,
    # coordination.k8s.io, discovery.k8s.io, events.k8s.io, flowcontrol.apiserver.k8s.io
    lease.KIND,
    endpointslice.KIND,
    events.KIND,
    flowcontrol.FLOW_SCHEMA,
    flowcontrol.PRIORITY_LEVEL,
    # networking.k8s.io
    networking.INGRESS,
    networking.INGRESS_CLASS,
    networking.IP_ADDRESS,
    networking.NETWORK_POLICY,
    # node.k8s.io, policy
    runtimeclass.KIND,
    policy.POD_DISRUPTION_BUDGET,
    # resource.k8s.io
    devicekinds.DEVICE_CLASS,
    devicekinds.DEVICE_TAINT_RULE,
    devicekinds.RESOURCE_CLAIM,
    devicekinds.RESOURCE_CLAIM_TEMPLATE,
    devicekinds.RESOURCE_SLICE,
    resourcepoolstatusrequest.KIND,
    # scheduling.k8s.io
    scheduling.COMPOSITE_POD_GROUP,
    scheduling.POD_GROUP,
    scheduling.PRIORITY_CLASS,
    scheduling.WORKLOAD,
    # storage.k8s.io
    storage.CSI_DRIVER,
    storage.CSI_NODE,
    storage.CSI_STORAGE_CAPACITY,
    storage.STORAGE_CLASS,
    storage.VOLUME_ATTACHMENT,
)

FIRST_ALPHA: Final[tuple[Kind, ...]] = (
    alphakinds.CLAIM_PARAMETERS,
    alphakinds.CLASS_PARAMETERS,
    alphakinds.NODE_RESOURCE_SLICE,
    alphakinds.RESOURCE_CLAIM,
    alphakinds.RESOURCE_CLAIM_TEMPLATE,
    alphakinds.RESOURCE_CLASS,
    alphakinds.RESOURCE_SLICE,
)
"""Kinds of v1alpha2, which upstream has removed."""

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
    """Return the kinds that an application serves with these feature gates."""
    kinds = (*KINDS, *FIRST_ALPHA) if gates.on(feature.Gate.FIRST_ALPHA) else KINDS
    if gates.on(feature.Gate.COMPOSITE_POD_GROUP):
        return kinds
    return tuple(each for each in kinds if each is not scheduling.COMPOSITE_POD_GROUP)
