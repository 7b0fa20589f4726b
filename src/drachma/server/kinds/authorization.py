"""Kinds of ``authorization.k8s.io``: reviews of access."""

from typing import Final

from drachma.server.kinds.document import DocumentStrategy
from drachma.server.surface import resources, verbs
from drachma.server.surface.apisurface import Kind

GROUP: Final = "authorization.k8s.io"


def _kind(kind: str, *, namespaced: bool) -> Kind:
    return Kind(
        group=GROUP,
        versions=("v1",),
        plural=f"{kind.lower()}s",
        kind=kind,
        namespaced=namespaced,
        verbs=(verbs.CREATE,),
        traits=resources.Traits(is_question=True),
        strategy=DocumentStrategy,
    )


LOCAL_SUBJECT_ACCESS: Final = _kind("LocalSubjectAccessReview", namespaced=True)
SELF_SUBJECT_ACCESS: Final = _kind("SelfSubjectAccessReview", namespaced=False)
SELF_SUBJECT_RULES: Final = _kind("SelfSubjectRulesReview", namespaced=False)
SUBJECT_ACCESS: Final = _kind("SubjectAccessReview", namespaced=False)
KINDS: Final = (LOCAL_SUBJECT_ACCESS, SELF_SUBJECT_ACCESS, SELF_SUBJECT_RULES, SUBJECT_ACCESS)
