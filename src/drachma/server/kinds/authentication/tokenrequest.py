"""TokenRequests: the body of ``serviceaccounts/token``, a wish for a token of the account and the token."""

from typing import Final

from drachma.server.schema import metatypes, notation
from drachma.server.surface import resources, verbs

_TYPES: Final = """\
TokenRequest: apiVersion=str kind=str metadata=ObjectMeta! spec=TokenRequestSpec! status=TokenRequestStatus!
TokenRequestSpec: attestations=<[str]> audiences=[str]! boundObjectRef=BoundObjectReference expirationSeconds=int64?
TokenRequestStatus: expirationTimestamp=Time! token=str!
BoundObjectReference: apiVersion=str kind=str name=str uid=str
"""
_NUMBERS: Final = """\
TokenRequest: metadata spec status
TokenRequestSpec: audiences - boundObjectRef expirationSeconds? attestations
TokenRequestStatus: token expirationTimestamp
BoundObjectReference: kind apiVersion name uid
"""
_TEXTS: Final = """\
TokenRequest: A wish for a token of a service account, and the token.
TokenRequestSpec: What token is wanted.
TokenRequestSpec.audiences: Whom it is for; the API server, if empty.
TokenRequestSpec.attestations: What else is said about whom the token is for.
TokenRequestSpec.expirationSeconds: How long it should be good; an hour, if not said. The answer says how long it is.
TokenRequestSpec.boundObjectRef: The object with which it ends: a pod, a secret or a node.
TokenRequestStatus: The token.
TokenRequestStatus.token: The token itself.
TokenRequestStatus.expirationTimestamp: When it ends.
BoundObjectReference: An object, by its name, and by its uid where that is given.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.authentication.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META,)
)

SUBRESOURCE: Final = resources.Subresource(
    name="token",
    verbs=(verbs.CREATE,),
    kind="TokenRequest",
    api_version="authentication.k8s.io/v1",
    schema=_PACKAGE.object("TokenRequest"),
)
