"""Service accounts."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from drachma.server import objectmeta
from drachma.server.kinds import authentication
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.surface import resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write

_ENFORCES_SECRETS: Final = "kubernetes.io/enforce-mountable-secrets"
_DEPRECATED: Final = (
    f"metadata.annotations[{_ENFORCES_SECRETS}]: deprecated in v1.32+; prefer separate namespaces to isolate access to "
    "mounted secrets"
)


class ServiceAccountStrategy(DocumentStrategy):
    rechecks_names = True

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        _keep_names(content)

    def prepare_update(self, content: Document, old: Mapping[str, Any], write: Write) -> None:
        _keep_names(content)

    def warnings(self, content: Document, subject: Subject) -> Iterable[str]:
        return [_DEPRECATED] if _is_enforcing(subject) else []

    def update(self, subject: Subject, old: Subject, write: Write) -> None:
        super().update(subject, old, write)
        if _is_enforcing(subject) and not _is_enforcing(old):
            write.warnings.append(_DEPRECATED)


def _keep_names(content: Document) -> None:
    """Drop everything but the names of secrets, in place."""
    if content.get("secrets"):
        content["secrets"] = [{"name": each["name"]} if each.get("name") else {} for each in content["secrets"]]


def _is_enforcing(subject: Subject) -> bool:
    return _ENFORCES_SECRETS in (subject.metadata.get("annotations") or ())


KIND: Final = Kind(
    group="",
    versions=("v1",),
    plural="serviceaccounts",
    kind="ServiceAccount",
    namespaced=True,
    short_names=("sa",),
    subresources=(authentication.TOKEN_REQUEST,),
    traits=resources.Traits(returns_deleted=True),
    strategy=ServiceAccountStrategy,
)
