"""Parameters that a binding gives to its policy: objects of a kind, by name or by labels."""

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
"""Parameters of a policy without any: it is evaluated once, with None."""


class ConfigurationError(errors.RequestError):
    """A binding cannot be used; the failure policy decides about the request."""


def resource_of(kind: Document, request: Request) -> resources.Resource:
    """Return the resource of a kind of parameters.

    Raises:
        ConfigurationError: the kind is not served.
    """
    api_version, name = kind.get("apiVersion", ""), kind.get("kind", "")
    resource = request.write.surface.find_kind(api_version, name)
    if resource is None:
        group, _, version = api_version.rpartition("/")
        detail = f"failed to find resource referenced by paramKind: '{group}/{version}, Kind={name}'"
        raise ConfigurationError(detail)
    return resource


def collect(
    kind: Document | None, ref: Document | None, request: Request, *, store: Reader
) -> Sequence[Document | None]:
    """Return the parameters in the order of their names; the policy is evaluated for each.

    Raises:
        ConfigurationError: parameters cannot be found, or are required and missing.
    """
    if kind is None or ref is None:
        return NONE
    resource = resource_of(kind, request)
    place = _place(resource, ref, request)
    parameters = _find(resource, ref, place, store=store)
    if not parameters and ref.get("parameterNotFoundAction") == "Deny":
        raise ConfigurationError("no params found for policy binding with `Deny` parameterNotFoundAction")
    strategy = request.write.surface.served(resource).strategy
    version = kind["apiVersion"].rpartition("/")[2]
    return [strategy.serve(each.value, version) for each in parameters]


def _place(resource: resources.Resource, ref: Document, request: Request) -> str | None:
    """Return the namespace of the parameters; empty for kinds of cluster scope."""
    namespace = ref.get("namespace", "")
    if not resource.namespaced:
        if namespace:
            raise ConfigurationError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        return ""
    place = namespace or request.namespace
    if not place:
        detail = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        raise ConfigurationError(detail)
    return str(place)


def _find(resource: resources.Resource, ref: Document, place: str | None, *, store: Reader) -> list[record.Record]:
    if ref.get("name"):
        parameter = store.get(record.Key(resource.key, place or "", ref["name"]))
        return [] if parameter is None else [parameter]
    selector = workload.compile_selector(ref.get("selector") or {}) or labels.NOTHING
    return [
        parameter
        for parameter in store.list(resource.key, place or None).records
        if selector.matches(parameter.value["metadata"].get("labels") or {})
    ]
