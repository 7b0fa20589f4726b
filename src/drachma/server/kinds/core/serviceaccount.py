"""Service accounts: who a pod is when it talks to the API server."""

from typing import Final

from drachma.server.kinds.authentication import tokenrequest
from drachma.server.kinds.core import references
from drachma.server.kinds.document import DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import resources
from drachma.server.surface.apisurface import Kind

_TYPES: Final = """\
ServiceAccount: apiVersion=str automountServiceAccountToken=bool? imagePullSecrets=[LocalObjectReference] kind=str
    metadata=ObjectMeta! secrets={ObjectReference:name}~
"""
_NUMBERS: Final = """\
ServiceAccount: metadata secrets imagePullSecrets automountServiceAccountToken?
"""
_TEXTS: Final = """\
ServiceAccount: Who a pod is when it talks to the API server.
ServiceAccount.secrets: The secrets that pods of the account may use.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.core.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META, references.REFERENCES)
)


class ServiceAccountStrategy(DocumentStrategy):
    rechecks_names = True


KIND: Final = Kind(
    group="",
    versions=("v1",),
    plural="serviceaccounts",
    kind="ServiceAccount",
    namespaced=True,
    short_names=("sa",),
    schemas={"v1": _PACKAGE.object("ServiceAccount")},
    subresources=(tokenrequest.SUBRESOURCE,),
    traits=resources.Traits(returns_deleted=True),
    strategy=ServiceAccountStrategy,
)
