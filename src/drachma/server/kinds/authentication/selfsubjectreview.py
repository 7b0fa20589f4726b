"""SelfSubjectReviews: the question who one is, which ``kubectl auth whoami`` asks."""

from typing import Final

from drachma.server.kinds.authentication import userinfo
from drachma.server.kinds.document import DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import resources, verbs
from drachma.server.surface.apisurface import Kind

_TYPES: Final = """\
SelfSubjectReview: apiVersion=str kind=str metadata=ObjectMeta! status=SelfSubjectReviewStatus!
SelfSubjectReviewStatus: userInfo=UserInfo!
"""
_NUMBERS: Final = """\
SelfSubjectReview: metadata status
SelfSubjectReviewStatus: userInfo
"""
_TEXTS: Final = """\
SelfSubjectReview: The question who one is.
SelfSubjectReviewStatus: The answer.
SelfSubjectReviewStatus.userInfo: Who asked.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.authentication.v1",
    _TYPES,
    numbers=_NUMBERS,
    texts=_TEXTS,
    uses=(metatypes.META, userinfo.USER_INFO),
)

KIND: Final = Kind(
    group="authentication.k8s.io",
    versions=("v1",),
    plural="selfsubjectreviews",
    kind="SelfSubjectReview",
    namespaced=False,
    verbs=(verbs.CREATE,),
    schemas={"v1": _PACKAGE.object("SelfSubjectReview")},
    traits=resources.Traits(is_question=True),
    strategy=DocumentStrategy,
)
