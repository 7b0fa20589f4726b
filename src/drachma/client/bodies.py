"""The documents that requests carry beside whole objects, and what is checked before anything is sent.

Both clients use it, so they refuse the same mistakes of callers and send the same options.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from drachma import errors
from drachma.api import hooks, meta, pod
from drachma.client import patches, protocol, target

encode = msgspec.json.Encoder(enc_hook=hooks.encode).encode
"""Any document as JSON."""


class _TokenAnswer(msgspec.Struct):
    """A TokenRequest as it is answered."""

    status: dict[str, Any]


def check_create(wanted: target.Target[Any], namespace: str) -> None:
    """Refuses a namespace that does not suit the kind."""
    wanted.check_place("new", namespace)


def check_update(wanted: target.Target[Any], changed: meta.Object) -> None:
    """Refuses to replace an object by a view of it that does not have all its fields."""
    if not wanted.is_complete:
        name = changed.metadata.name
        raise errors.InvalidValueError(
            f"{wanted.qualified} {name!r}: is a partial view, and updating with it would lose fields: patch it"
        )


def check_watch(wanted: target.Target[Any], resource_version: str) -> None:
    """Refuses a watch from nowhere in particular, which would begin with events that never happened."""
    if resource_version in ("", "0"):
        raise errors.InvalidValueError(f"{wanted.qualified}: a watch needs the resource version of a list or an event")


def write_options(manager: str, *, is_strict: bool = False) -> dict[str, str]:
    """The parameters of every write: who owns what it changes, and that nobody reads warnings about its fields."""
    return {"fieldManager": manager, "fieldValidation": "Strict" if is_strict else "Ignore"}


def list_options(
    wanted: target.Target[Any], selection: protocol.Selection, *, limit: int, continue_token: str
) -> dict[str, str]:
    """The parameters of a list; without a limit it is whole."""
    query = selected(wanted, selection)
    if limit:
        query["limit"] = str(limit)
    if continue_token:
        query["continue"] = continue_token
    return query


def selected(wanted: target.Target[Any], selection: protocol.Selection) -> dict[str, str]:
    """A selection as the parameters of a request."""
    wanted.check_scope(selection.namespace)
    query = {"labelSelector": selection.labels, "fieldSelector": selection.fields}
    return {parameter: text for parameter, text in query.items() if text}


def name_of(document: Mapping[str, Any]) -> str:
    """The name in a document's metadata, empty where there is none."""
    return str((document.get("metadata") or {}).get("name") or "")


def namespace_of(document: Mapping[str, Any]) -> str:
    """The namespace in a document's metadata, empty where there is none."""
    return str((document.get("metadata") or {}).get("namespace") or "")


def delete_options(
    preconditions: patches.Preconditions, grace_period_seconds: int | None, *, propagation: str | None
) -> dict[str, Any]:
    """How to delete, as the server reads it."""
    options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
    if grace_period_seconds is not None:
        options["gracePeriodSeconds"] = grace_period_seconds
    if preconditions:
        options["preconditions"] = preconditions.metadata
    if propagation is not None:
        options["propagationPolicy"] = propagation
    return options


def binding(bound: pod.Pod, node: str) -> dict[str, Any]:
    """The assignment of a pod to a node."""
    return {
        "kind": "Binding",
        "apiVersion": "v1",
        "metadata": _identity(bound),
        "target": {"kind": "Node", "name": node},
    }


def eviction(evicted: pod.Pod, grace_period_seconds: int | None) -> dict[str, Any]:
    """The wish that a pod goes."""
    metadata = {field: value for field, value in _identity(evicted).items() if field != "uid"}
    options = delete_options(patches.same(evicted), grace_period_seconds, propagation=None)
    return {
        "kind": "Eviction",
        "apiVersion": "policy/v1",
        "metadata": metadata,
        "deleteOptions": {field: value for field, value in options.items() if field not in ("kind", "apiVersion")},
    }


def token_request(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The wish for a token of a service account."""
    return {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": dict(spec)}


def token_status(data: bytes) -> Mapping[str, Any]:
    """What the answer to it says.

    Raises:
        errors.DecodeError: it does not say it.
    """
    try:
        return msgspec.json.decode(data, type=_TokenAnswer).status
    except msgspec.DecodeError as error:
        raise errors.DecodeError(f"the answer to a TokenRequest: {error}") from error


def completed(patch: patches.Patch, wanted: target.Target[Any], version: str, *, name: str) -> patches.Patch:
    """An apply patch with the apiVersion, kind and name that it must have."""
    content = msgspec.json.decode(patch.data)
    metadata = {**(content.get("metadata") or {}), "name": name}
    head = {"apiVersion": wanted.api_version(version), "kind": wanted.kind}
    return msgspec.structs.replace(patch, data=encode({**head, **content, "metadata": metadata}))


def _identity(about: pod.Pod) -> dict[str, str]:
    names = {
        "name": about.metadata.name,
        "namespace": about.metadata.namespace,
        "uid": about.metadata.uid,
    }
    return {field: value for field, value in names.items() if value}
