"""Field numbers of object metadata and delete options.

For the notation see :mod:`drachma.server.decoding.protobuf.notation`.
"""

from typing import Final

TYPES: Final = """\
@io.k8s.apimachinery.pkg.apis.meta.v1
Condition: type status observedGeneration lastTransitionTime reason message
DeleteOptions: gracePeriodSeconds? preconditions orphanDependents? propagationPolicy? dryRun
    ignoreStoreReadErrorWithClusterBreakingPotential?
LabelSelector: matchLabels matchExpressions
LabelSelectorRequirement: key operator values
ManagedFieldsEntry: manager operation apiVersion time 6:fieldsType fieldsV1 subresource
ObjectMeta: name generateName namespace selfLink uid resourceVersion generation creationTimestamp deletionTimestamp
    deletionGracePeriodSeconds? labels annotations ownerReferences finalizers 17:managedFields
OwnerReference: kind 3:name uid apiVersion controller? blockOwnerDeletion?
Preconditions: uid resourceVersion?
"""
