"""The kinds that every application serves."""

from typing import Final

from drachma.server.kinds.admissionregistration import (
    mutatingadmissionpolicy,
    policybinding,
    validatingadmissionpolicy,
    webhookconfiguration,
)
from drachma.server.kinds.apiextensions import customresourcedefinition
from drachma.server.kinds.apps import deployment, replicaset
from drachma.server.kinds.authentication import selfsubjectreview, tokenreview
from drachma.server.kinds.authorization import reviewtypes
from drachma.server.kinds.batch import job
from drachma.server.kinds.coordination import lease
from drachma.server.kinds.core import (
    configmap,
    event,
    limitrange,
    namespace,
    node,
    pod,
    resourcequota,
    secret,
    serviceaccount,
)
from drachma.server.kinds.events import event as newer_event
from drachma.server.kinds.policy import poddisruptionbudget
from drachma.server.kinds.rbac import clusterrole, clusterrolebinding, role, rolebinding
from drachma.server.kinds.resource import (
    deviceclass,
    devicetaintrule,
    resourceclaim,
    resourceclaimtemplate,
    resourceslice,
)
from drachma.server.kinds.scheduling import priorityclass
from drachma.server.surface.apisurface import Kind

KINDS: Final[tuple[Kind, ...]] = (
    clusterrole.KIND,
    clusterrolebinding.KIND,
    configmap.KIND,
    customresourcedefinition.KIND,
    deployment.KIND,
    deviceclass.KIND,
    devicetaintrule.KIND,
    event.KIND,
    newer_event.KIND,
    job.KIND,
    lease.KIND,
    limitrange.KIND,
    namespace.KIND,
    mutatingadmissionpolicy.KIND,
    node.KIND,
    pod.KIND,
    poddisruptionbudget.KIND,
    policybinding.MUTATING,
    policybinding.VALIDATING,
    priorityclass.KIND,
    replicaset.KIND,
    resourceclaim.KIND,
    resourceclaimtemplate.KIND,
    resourcequota.KIND,
    resourceslice.KIND,
    role.KIND,
    rolebinding.KIND,
    secret.KIND,
    selfsubjectreview.KIND,
    serviceaccount.KIND,
    tokenreview.KIND,
    validatingadmissionpolicy.KIND,
    webhookconfiguration.MUTATING,
    webhookconfiguration.VALIDATING,
    *reviewtypes.KINDS,
)
