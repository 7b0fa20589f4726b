"""Types that all kinds share: object metadata, label selectors, conditions, delete options.

For the notation see :mod:`drachma.server.schema.notation`.
"""

from typing import Final

TYPES: Final = """\
@io.k8s.apimachinery.pkg.apis.meta.v1
Condition: lastTransitionTime=Time!* message=str* observedGeneration=int64 reason=str* status=str* type=str*
DeleteOptions: apiVersion=str dryRun=[str] gracePeriodSeconds=int64?
    ignoreStoreReadErrorWithClusterBreakingPotential=bool? kind=str orphanDependents=bool? preconditions=Preconditions
    propagationPolicy=str?
LabelSelector!: matchExpressions=[LabelSelectorRequirement] matchLabels=<str>
LabelSelectorRequirement: key=str* operator=str* values=[str]
ListMeta: continue=str remainingItemCount=int64? resourceVersion=str selfLink=str
ManagedFieldsEntry: apiVersion=str fieldsType=str fieldsV1=FieldsV1 manager=str operation=str subresource=str time=Time
ObjectMeta: annotations=<str> creationTimestamp=Time deletionGracePeriodSeconds=int64? deletionTimestamp=Time
    finalizers={str}~ generateName=str generation=int64 labels=<str> managedFields=[ManagedFieldsEntry] name=str
    namespace=str ownerReferences={OwnerReference:uid}~ resourceVersion=str selfLink=str uid=str
OwnerReference!: apiVersion=str* blockOwnerDeletion=bool? controller=bool? kind=str* name=str* uid=str*
Preconditions: resourceVersion=str uid=str?
Status: apiVersion=str code=int32 details=StatusDetails kind=str message=str metadata=ListMeta! reason=str status=str
StatusCause: field=str message=str reason=str
StatusDetails: causes=[StatusCause] group=str kind=str name=str retryAfterSeconds=int32 uid=str
"""
