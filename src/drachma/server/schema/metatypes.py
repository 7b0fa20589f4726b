"""Types that all kinds share: object metadata, label selectors, conditions, delete options.

For the notation see :mod:`drachma.server.schema.notation`.
"""

from typing import Final

from drachma.api import meta
from drachma.server.schema import notation

_TYPES: Final = """\
Condition: lastTransitionTime=Time!* message=str* observedGeneration=int64 reason=str* status=str* type=str*
DeleteOptions: apiVersion=str dryRun=[str] gracePeriodSeconds=int64?
    ignoreStoreReadErrorWithClusterBreakingPotential=bool? kind=str orphanDependents=bool? preconditions=Preconditions
    propagationPolicy=str@DeletionPropagation?
LabelSelector!: matchExpressions=[LabelSelectorRequirement] matchLabels=<str>
LabelSelectorRequirement: key=str* operator=str* values=[str]
ListMeta: continue=str remainingItemCount=int64? resourceVersion=str selfLink=str
ManagedFieldsEntry: apiVersion=str fieldsType=str fieldsV1=FieldsV1 manager=str operation=str@ManagedFieldsOperationType
    subresource=str time=Time
ObjectMeta: annotations=<str> creationTimestamp=Time deletionGracePeriodSeconds=int64? deletionTimestamp=Time
    finalizers={str}~ generateName=str generation=int64 labels=<str> managedFields=[ManagedFieldsEntry] name=str
    namespace=str ownerReferences={OwnerReference:uid}~ resourceVersion=str selfLink=str uid=str@types.UID
OwnerReference!: apiVersion=str* blockOwnerDeletion=bool? controller=bool? kind=str* name=str* uid=str@types.UID*
Preconditions: resourceVersion=str uid=str@types.UID?
Status: apiVersion=str code=int32 details=StatusDetails kind=str message=str metadata=ListMeta! reason=str status=str
StatusCause: field=str message=str reason=str
StatusDetails: causes=[StatusCause] group=str kind=str name=str retryAfterSeconds=int32 uid=str
"""
_NUMBERS: Final = """\
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
_TEXTS: Final = """\
ObjectMeta.annotations: Texts that tools keep with the object; nothing is selected by them.
ObjectMeta.creationTimestamp: When the server created the object.
ObjectMeta.deletionGracePeriodSeconds: How long the object has from the request to delete it until it goes.
ObjectMeta.deletionTimestamp: When deletion was asked for; the object goes when its finalizers are gone.
ObjectMeta.finalizers: Who has something to do before the object may go.
ObjectMeta.generateName: The beginning of a name that the server completes; used where no name is given.
ObjectMeta.generation: Counts the changes of what is wanted.
ObjectMeta.labels: Key and value pairs that objects are selected by.
ObjectMeta.managedFields: Who owns which fields; kept by the server.
ObjectMeta.name: The name of the object, unique among its kind in its namespace; it never changes.
ObjectMeta.namespace: The namespace the object lives in; empty for kinds of cluster scope.
ObjectMeta.ownerReferences: What the object belongs to; it goes when all of that is gone.
ObjectMeta.resourceVersion: Changes with every write; send it back to make sure that nothing is overwritten.
ObjectMeta.selfLink: Not used any more.
ObjectMeta.uid: Tells the object from earlier ones of the same name.
OwnerReference.apiVersion: The API version of the owner.
OwnerReference.blockOwnerDeletion: Whether a foreground deletion of the owner waits for this object.
OwnerReference.controller: Whether the owner manages this object; at most one owner does.
OwnerReference.kind: The kind of the owner.
OwnerReference.name: The name of the owner.
OwnerReference.uid: The uid of the owner.
LabelSelector.matchExpressions: Expressions over labels; all must hold.
LabelSelector.matchLabels: Labels that must be there with these values.
Condition.type: Which aspect this is about.
Condition.status: True, False or Unknown.
Condition.reason: Why, in one word.
Condition.message: Why, for people.
Condition.lastTransitionTime: When the status last changed.
Condition.observedGeneration: Which generation of the object this was observed of.
ListMeta: The version of a list, and where it goes on.
ListMeta.continue: Send it back to get the next part of the list.
ListMeta.remainingItemCount: How many items are still to come.
ListMeta.resourceVersion: The version of the list; a watch can begin there.
DeleteOptions: How an object is to be deleted.
Status: The answer to a request that has no object as its answer, mostly an error.
"""

META: Final = notation.Types(
    "io.k8s.apimachinery.pkg.apis.meta.v1",
    _TYPES,
    numbers=_NUMBERS,
    texts=_TEXTS,
    docs=(meta,),
)
