"""Attributes of requests, which authorisers decide on.

Upstream derives them from the path before it knows which kinds are served, so that a user without permissions does not
learn that from a 404. Here a call has the attributes already, and only other paths are parsed.
"""

from collections.abc import Iterable
from typing import Final

from drachma import errors
from drachma.server.access.authorization import Attributes
from drachma.server.calls import options
from drachma.server.calls.call import Call
from drachma.server.surface import fieldselector, selectable, verbs
from drachma.server.user import User
from drachma.validation import metadata
from drachma.values import label_syntax, labels

_NAMESPACES: Final = "namespaces"
_NAMESPACE_SUBRESOURCES: Final = frozenset({"status", "finalize"})
_SELECTIVE: Final = frozenset({verbs.LIST, verbs.WATCH, verbs.DELETE_COLLECTION})
_VERBS: Final = {
    "GET": verbs.GET,
    "HEAD": verbs.GET,
    "POST": verbs.CREATE,
    "PUT": verbs.UPDATE,
    "PATCH": verbs.PATCH,
    "DELETE": verbs.DELETE,
}
_PATH_VERBS: Final = ("proxy", "watch")
"""Verbs that may precede the resource in a path, in the style of old versions."""


def from_call(call: Call) -> Attributes:
    """Return the attributes of a call."""
    target, verb = call.target, call.verb
    resource, below = target.resource, target.subresource
    name, namespace = target.name, target.namespace or ""
    fields: tuple[fieldselector.Term, ...] = ()
    label_requirements: tuple[labels.Requirement, ...] = ()
    if call.query and verb in _SELECTIVE:
        fields, label_requirements = _fields(call.query), _labels(call.query)
        if not name and verb != verbs.DELETE_COLLECTION:
            name = _only_name(fields)
    return Attributes(
        user=call.user,
        verb=verb,
        group=resource.group,
        version=target.version,
        resource=resource.plural,
        subresource=below.name if below is not None else "",
        name=name,
        # As in upstream, a namespace is in itself, so that a role in it can cover it.
        namespace=target.name if resource.group_resource == _NAMESPACES else namespace,
        fields=fields,
        labels=label_requirements,
    )


def from_path(method: str, path: str, *, user: User, query: options.Query) -> Attributes:
    """Return the attributes of any request by its path. For non-resource paths the verb is the method."""
    parts = path.strip("/").split("/")
    if len(parts) < 3 or parts[0] not in ("api", "apis") or (parts[0] == "apis" and len(parts) < 4):
        return Attributes(user=user, verb=method.lower(), path=path)
    group, (version, *parts) = ("", parts[1:]) if parts[0] == "api" else (parts[1], parts[2:])
    verb = _VERBS.get(method, "")
    has_path_verb = parts[0] in _PATH_VERBS and len(parts) > 1
    if has_path_verb:
        verb, *parts = parts
    namespace = ""
    if parts[0] == _NAMESPACES and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES:
            parts = parts[2:]
    resource, name, subresource, *_ = (*parts, "", "")
    fields: tuple[fieldselector.Term, ...] = ()
    label_requirements: tuple[labels.Requirement, ...] = ()
    if not name and verb == verbs.GET:
        fields = _fields(query)
        verb = verbs.WATCH if options.boolean(query, "watch") else verbs.LIST
        name = _only_name(fields)
    elif not name and verb == verbs.DELETE:
        verb = verbs.DELETE_COLLECTION
    if verb in _SELECTIVE and not has_path_verb:
        fields, label_requirements = _fields(query), _labels(query)
    return Attributes(
        user=user,
        verb=verb,
        group=group,
        version=version,
        resource=resource,
        subresource=subresource,
        name=name,
        namespace=namespace,
        fields=fields,
        labels=label_requirements,
    )


def _only_name(fields: Iterable[fieldselector.Term]) -> str:
    """Return the name that a list or watch is limited to; it counts like a name in the path."""
    for term in fields:
        if term.field == selectable.NAME and not term.is_negated:
            return "" if metadata.path_segment(term.value, is_prefix=False) else term.value
    return ""


def _fields(query: options.Query) -> tuple[fieldselector.Term, ...]:
    text = query.get("fieldSelector", ("",))[0]
    try:
        return tuple(fieldselector.terms(text)) if text else ()
    except errors.InvalidValueError:
        return ()


def _labels(query: options.Query) -> tuple[labels.Requirement, ...]:
    text = query.get("labelSelector", ("",))[0]
    try:
        return tuple(label_syntax.parse(text).requirements) if text else ()
    except errors.InvalidValueError:
        return ()
