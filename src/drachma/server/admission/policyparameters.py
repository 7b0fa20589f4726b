"""The parameters that a binding gives to its policy: objects of a kind, by name or by labels."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma import errors
from drachma.server.admission.request import Request
from drachma.server.reads.reader import Reader
from drachma.server.surface import resources
from drachma.store import record
from drachma.validation import workload
from drachma.values import labels

Document = Mapping[str, Any]

NONE: Final[Sequence[Document | None]] = (None,)
"""Where a policy takes no parameters, or its binding gives none: it is evaluated once, without."""


class ConfigurationError(errors.RequestError):
    """A binding cannot be used as it is; what that means for the request is the policy's to say."""


def resource_of(kind: Document, request: Request) -> resources.Resource:
    """The resource that parameters of a kind are.

    Raises:
        ConfigurationError: nothing of the kind is served.
    """
    api_version, name = kind.get("apiVersion", ""), kind.get("kind", "")
    resource = request.write.surface.of_kind(api_version, name)
    if resource is None:
        group, _, version = api_version.rpartition("/")
        detail = f"failed to find resource referenced by paramKind: '{group}/{version}, Kind={name}'"
        raise ConfigurationError(detail)
    return resource


def collect(
    kind: Document | None, ref: Document | None, request: Request, *, store: Reader
) -> Sequence[Document | None]:
    """The parameters, in the order of their names; the policy is evaluated for each.

    Raises:
        ConfigurationError: they cannot be found, or must be there and are not.
    """
    if kind is None or ref is None:
        return NONE
    resource = resource_of(kind, request)
    place = _place(resource, ref, request)
    found = _find(resource, ref, place, store=store)
    if not found and ref.get("parameterNotFoundAction") == "Deny":
        raise ConfigurationError("no params found for policy binding with `Deny` parameterNotFoundAction")
    strategy = request.write.surface.served(resource).strategy
    version = kind["apiVersion"].rpartition("/")[2]
    return [strategy.serve(each.value, version) for each in found]


def _place(resource: resources.Resource, ref: Document, request: Request) -> str | None:
    """The namespace of the parameters; empty for kinds of cluster scope."""
    named = ref.get("namespace", "")
    if not resource.namespaced:
        if named:
            raise ConfigurationError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        return ""
    place = named or request.namespace
    if not place:
        detail = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        raise ConfigurationError(detail)
    return str(place)


def _find(resource: resources.Resource, ref: Document, place: str | None, *, store: Reader) -> list[record.Record]:
    if ref.get("name"):
        stored = store.get(record.Key(resource.key, place or "", ref["name"]))
        return [] if stored is None else [stored]
    selector = workload.matching(ref.get("selector") or {}) or labels.NOTHING
    return [
        stored
        for stored in store.list(resource.key, place or None).records
        if selector.matches(stored.value["metadata"].get("labels") or {})
    ]
