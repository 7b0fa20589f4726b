"""Permissions of a user, as the API server answers for the user's own credentials."""

from __future__ import annotations

from typing import Any, Final

from drachma.client import Client, target

_REVIEWS: Final = target.metadata_of(
    "authorization.k8s.io", "v1", plural="selfsubjectaccessreviews", kind="SelfSubjectAccessReview", namespaced=False
)


async def may(client: Client, verb: str, kind: target.Of[Any], *, namespace: str = "", name: str = "") -> bool:
    """Return True if the user of a client may use a verb on objects of a kind."""
    resource = target.of(kind)
    attributes = {"verb": verb, "group": resource.group, "resource": resource.plural}
    if namespace:
        attributes["namespace"] = namespace
    if name:
        attributes["name"] = name
    answer = await client.create_document(
        _REVIEWS,
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        },
    )
    return bool((answer.get("status") or {}).get("allowed"))
