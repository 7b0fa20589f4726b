"""Kinds of ``authentication.k8s.io``: reviews of tokens and of the requester, and requests for tokens."""

from typing import Final

from drachma.api import types
from drachma.server.kinds.document import DocumentStrategy
from drachma.server.surface import resources, verbs
from drachma.server.surface.apisurface import Kind

SELF_SUBJECT_REVIEW: Final = Kind(
    group="authentication.k8s.io",
    versions=("v1",),
    plural="selfsubjectreviews",
    kind="SelfSubjectReview",
    namespaced=False,
    verbs=(verbs.CREATE,),
    traits=resources.Traits(is_question=True),
    strategy=DocumentStrategy,
)


TOKEN_REVIEW: Final = Kind(
    group="authentication.k8s.io",
    versions=("v1",),
    plural="tokenreviews",
    kind="TokenReview",
    namespaced=False,
    verbs=(verbs.CREATE,),
    traits=resources.Traits(is_question=True),
    strategy=DocumentStrategy,
)


TOKEN_REQUEST: Final = resources.Subresource(
    name="token",
    verbs=(verbs.CREATE,),
    kind="TokenRequest",
    api_version="authentication.k8s.io/v1",
    schema=types.get("authentication.k8s.io/v1.TokenRequest"),
)
