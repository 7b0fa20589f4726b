"""The types of questions about what somebody may do."""

from typing import Final

from drachma.server.kinds.document import DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import resources, verbs
from drachma.server.surface.apisurface import Kind

_TYPES: Final = """\
FieldSelectorAttributes: rawSelector=str requirements=[FieldSelectorRequirement]
FieldSelectorRequirement: key=str* operator=str* values=[str]
LabelSelectorAttributes: rawSelector=str requirements=[LabelSelectorRequirement]
LocalSubjectAccessReview: apiVersion=str kind=str metadata=ObjectMeta! spec=SubjectAccessReviewSpec!*
    status=SubjectAccessReviewStatus!
NonResourceAttributes: path=str verb=str
NonResourceRule: nonResourceURLs=[str] verbs=[str]!*
ResourceAttributes: fieldSelector=FieldSelectorAttributes group=str labelSelector=LabelSelectorAttributes name=str
    namespace=str resource=str subresource=str verb=str version=str
ResourceRule: apiGroups=[str] resourceNames=[str] resources=[str] verbs=[str]!*
SelfSubjectAccessReview: apiVersion=str kind=str metadata=ObjectMeta! spec=SelfSubjectAccessReviewSpec!*
    status=SubjectAccessReviewStatus!
SelfSubjectAccessReviewSpec: nonResourceAttributes=NonResourceAttributes resourceAttributes=ResourceAttributes
SelfSubjectRulesReview: apiVersion=str kind=str metadata=ObjectMeta! spec=SelfSubjectRulesReviewSpec!*
    status=SubjectRulesReviewStatus!
SelfSubjectRulesReviewSpec: namespace=str
SubjectAccessReview: apiVersion=str kind=str metadata=ObjectMeta! spec=SubjectAccessReviewSpec!*
    status=SubjectAccessReviewStatus!
SubjectAccessReviewSpec: extra=<[str]> groups=[str] nonResourceAttributes=NonResourceAttributes
    resourceAttributes=ResourceAttributes uid=str user=str
SubjectAccessReviewStatus: allowed=bool* denied=bool evaluationError=str reason=str
SubjectRulesReviewStatus: evaluationError=str incomplete=bool* nonResourceRules=[NonResourceRule]!*
    resourceRules=[ResourceRule]!*
"""
_NUMBERS: Final = """\
FieldSelectorAttributes: rawSelector requirements
FieldSelectorRequirement: key operator values
LabelSelectorAttributes: rawSelector requirements
LocalSubjectAccessReview: metadata spec status
NonResourceAttributes: path verb
NonResourceRule: verbs nonResourceURLs
ResourceAttributes: namespace verb group version resource subresource name fieldSelector labelSelector
ResourceRule: verbs apiGroups resources resourceNames
SelfSubjectAccessReview: metadata spec status
SelfSubjectAccessReviewSpec: resourceAttributes nonResourceAttributes
SelfSubjectRulesReview: metadata spec status
SelfSubjectRulesReviewSpec: namespace
SubjectAccessReview: metadata spec status
SubjectAccessReviewSpec: resourceAttributes nonResourceAttributes user groups extra uid
SubjectAccessReviewStatus: allowed reason evaluationError denied
SubjectRulesReviewStatus: resourceRules nonResourceRules incomplete evaluationError
"""
_TEXTS: Final = """\
FieldSelectorAttributes: What a list, a watch or the deletion of a collection is limited to by fields.
FieldSelectorAttributes.rawSelector: The limits as they stand in a query.
FieldSelectorAttributes.requirements: The limits one by one; those that are not understood do not count.
FieldSelectorRequirement: A limit by one field.
LabelSelectorAttributes: What a list, a watch or the deletion of a collection is limited to by labels.
LabelSelectorAttributes.rawSelector: The limits as they stand in a query.
LabelSelectorAttributes.requirements: The limits one by one; those that are not understood do not count.
LocalSubjectAccessReview: The question whether a user may do something in a namespace.
NonResourceAttributes: Something done to a path beside the resources.
NonResourceAttributes.path: The path.
NonResourceAttributes.verb: The method, in lower case.
NonResourceRule: What may be done to paths.
ResourceAttributes: Something done to objects.
ResourceAttributes.name: The name of the object; empty for all.
ResourceAttributes.namespace: The namespace; empty for all, or for objects that are in none.
ResourceAttributes.verb: What is done, or "*" for everything.
ResourceRule: What may be done to objects.
SelfSubjectAccessReview: The question whether one may do something oneself.
SelfSubjectAccessReviewSpec.nonResourceAttributes: Something done to a path.
SelfSubjectAccessReviewSpec.resourceAttributes: Something done to objects.
SelfSubjectRulesReview: The question what one may do in a namespace; for display, not to decide by.
SelfSubjectRulesReviewSpec.namespace: The namespace.
SubjectAccessReview: The question whether a user may do something.
SubjectAccessReviewSpec.extra: What else credentials of the user say.
SubjectAccessReviewSpec.groups: The groups of the user; none are added.
SubjectAccessReviewSpec.nonResourceAttributes: Something done to a path.
SubjectAccessReviewSpec.resourceAttributes: Something done to objects.
SubjectAccessReviewSpec.uid: The uid of the user.
SubjectAccessReviewSpec.user: The name of the user.
SubjectAccessReviewStatus.allowed: Whether it would be allowed.
SubjectAccessReviewStatus.denied: Whether it is forbidden, whoever else might allow it.
SubjectAccessReviewStatus.evaluationError: What went wrong on the way; the answer may be right all the same.
SubjectAccessReviewStatus.reason: Why it is allowed or not.
SubjectRulesReviewStatus.evaluationError: What went wrong on the way; rules may be missing.
SubjectRulesReviewStatus.incomplete: Whether the rules do not say everything.
SubjectRulesReviewStatus.nonResourceRules: What may be done beside the resources.
SubjectRulesReviewStatus.resourceRules: What may be done to objects.
"""
_TYPES_OF_REVIEWS: Final = notation.Types(
    "io.k8s.api.authorization.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META,)
)

GROUP: Final = "authorization.k8s.io"


def _kind(kind: str, *, namespaced: bool) -> Kind:
    return Kind(
        group=GROUP,
        versions=("v1",),
        plural=f"{kind.lower()}s",
        kind=kind,
        namespaced=namespaced,
        verbs=(verbs.CREATE,),
        schemas={"v1": _TYPES_OF_REVIEWS.object(kind)},
        traits=resources.Traits(is_question=True),
        strategy=DocumentStrategy,
    )


LOCAL_SUBJECT_ACCESS: Final = _kind("LocalSubjectAccessReview", namespaced=True)
SELF_SUBJECT_ACCESS: Final = _kind("SelfSubjectAccessReview", namespaced=False)
SELF_SUBJECT_RULES: Final = _kind("SelfSubjectRulesReview", namespaced=False)
SUBJECT_ACCESS: Final = _kind("SubjectAccessReview", namespaced=False)
KINDS: Final = (LOCAL_SUBJECT_ACCESS, SELF_SUBJECT_ACCESS, SELF_SUBJECT_RULES, SUBJECT_ACCESS)
