"""TokenReviews: the question whose a token is, which servers ask that are shown one."""

from typing import Final

from drachma.server.kinds.authentication import userinfo
from drachma.server.kinds.document import DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import resources, verbs
from drachma.server.surface.apisurface import Kind

_TYPES: Final = """\
TokenReview: apiVersion=str kind=str metadata=ObjectMeta! spec=TokenReviewSpec!* status=TokenReviewStatus!
TokenReviewSpec: audiences=[str] token=str
TokenReviewStatus: audiences=[str] authenticated=bool error=str user=UserInfo!
"""
_NUMBERS: Final = """\
TokenReview: metadata spec status
TokenReviewSpec: token audiences
TokenReviewStatus: authenticated user error audiences
"""
_TEXTS: Final = """\
TokenReview: The question whose a token is.
TokenReviewSpec: What is asked.
TokenReviewSpec.token: The token, as a client would show it.
TokenReviewSpec.audiences: Who asks; a token that is for none of them is no good. The API server, if empty.
TokenReviewStatus: The answer.
TokenReviewStatus.authenticated: Whether the token is good.
TokenReviewStatus.user: Whose it is.
TokenReviewStatus.audiences: Those that asked and that the token is for.
TokenReviewStatus.error: Why it is no good.
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
    plural="tokenreviews",
    kind="TokenReview",
    namespaced=False,
    verbs=(verbs.CREATE,),
    schemas={"v1": _PACKAGE.object("TokenReview")},
    traits=resources.Traits(is_question=True),
    strategy=DocumentStrategy,
)
