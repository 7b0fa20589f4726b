"""Bodies and parameters of requests other than whole objects, and checks before anything is sent.

Both clients use it, so they refuse the same mistakes of callers and send the same options.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from drachma import errors
from drachma.api import hooks, meta, pod
from drachma.client import patches, protocol, target

encode = msgspec.json.Encoder(enc_hook=hooks.encode).encode
"""Encode any document as JSON."""


class _TokenAnswer(msgspec.Struct):
    """A TokenRequest in an answer."""

    status: dict[str, Any]


def check_create(kind: target.Target[Any], namespace: str) -> None:
    """Refuse a namespace that does not suit the kind."""
    kind.check_place("new", namespace)


def check_update(kind: target.Target[Any], view: meta.Object) -> None:
    """Refuse to replace an object by a partial view of it."""
    if not kind.is_complete:
        name = view.metadata.name
        raise errors.InvalidValueError(
            f"{kind.qualified} {name!r}: is a partial view, and updating with it would lose fields: patch it"
        )


def check_watch(kind: target.Target[Any], resource_version: str) -> None:
    """Refuse a watch without a resource version, which would begin with synthetic events."""
    if resource_version in ("", "0"):
        raise errors.InvalidValueError(f"{kind.qualified}: a watch needs the resource version of a list or an event")


def write_options(manager: str, *, is_strict: bool = False) -> dict[str, str]:
    """Return the parameters of every write: its field manager, and whether unknown fields are refused."""
    return {"fieldManager": manager, "fieldValidation": "Strict" if is_strict else "Ignore"}


def list_options(
    kind: target.Target[Any], selection: protocol.Selection, *, limit: int, continue_token: str
) -> dict[str, str]:
    """Return the parameters of a list. Without a limit the list is complete."""
    query = selection_options(kind, selection)
    if limit:
        query["limit"] = str(limit)
    if continue_token:
        query["continue"] = continue_token
    return query


def selection_options(kind: target.Target[Any], selection: protocol.Selection) -> dict[str, str]:
    """Return a selection as parameters of a request."""
    kind.check_scope(selection.namespace)
    query = {"labelSelector": selection.labels, "fieldSelector": selection.fields}
    return {parameter: text for parameter, text in query.items() if text}


def name_of(document: Mapping[str, Any]) -> str:
    """Return the name in a document's metadata, or an empty text."""
    return str((document.get("metadata") or {}).get("name") or "")


def namespace_of(document: Mapping[str, Any]) -> str:
    """Return the namespace in a document's metadata, or an empty text."""
    return str((document.get("metadata") or {}).get("namespace") or "")


def delete_options(
    preconditions: patches.Preconditions, grace_period_seconds: int | None, *, propagation: str | None
) -> dict[str, Any]:
    """Return DeleteOptions."""
    options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
    if grace_period_seconds is not None:
        options["gracePeriodSeconds"] = grace_period_seconds
    if preconditions:
        options["preconditions"] = preconditions.metadata
    if propagation is not None:
        options["propagationPolicy"] = propagation
    return options


def binding(pod_view: pod.Pod, node: str) -> dict[str, Any]:
    """Return a Binding of a pod to a node."""
    return {
        "kind": "Binding",
        "apiVersion": "v1",
        "metadata": _identity(pod_view),
        "target": {"kind": "Node", "name": node},
    }


def eviction(pod_view: pod.Pod, grace_period_seconds: int | None) -> dict[str, Any]:
    """Return an Eviction of a pod."""
    metadata = {field: value for field, value in _identity(pod_view).items() if field != "uid"}
    options = delete_options(patches.same(pod_view), grace_period_seconds, propagation=None)
    return {
        "kind": "Eviction",
        "apiVersion": "policy/v1",
        "metadata": metadata,
        "deleteOptions": {field: value for field, value in options.items() if field not in ("kind", "apiVersion")},
    }


def token_request(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a TokenRequest for a service account."""
    return {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": dict(spec)}


def token_status(data: bytes) -> Mapping[str, Any]:
    """Return the status of an answered TokenRequest.

    Raises:
        errors.DecodeError: the answer has no status.
    """
    try:
        return msgspec.json.decode(data, type=_TokenAnswer).status
    except msgspec.DecodeError as error:
        raise errors.DecodeError(f"the answer to a TokenRequest: {error}") from error


def complete_apply(patch: patches.Patch, kind: target.Target[Any], version: str, *, name: str) -> patches.Patch:
    """Return an apply patch with the apiVersion, kind and name that it must have."""
    content = msgspec.json.decode(patch.data)
    metadata = {**(content.get("metadata") or {}), "name": name}
    head = {"apiVersion": kind.api_version(version), "kind": kind.kind}
    return msgspec.structs.replace(patch, data=encode({**head, **content, "metadata": metadata}))


def _identity(pod_view: pod.Pod) -> dict[str, str]:
    names = {
        "name": pod_view.metadata.name,
        "namespace": pod_view.metadata.namespace,
        "uid": pod_view.metadata.uid,
    }
    return {field: value for field, value in names.items() if value}
