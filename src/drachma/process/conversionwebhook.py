"""Kueue's conversion webhook: objects of ``kueue.x-k8s.io`` between v1beta1 and v1beta2, for any API server.

An API server that serves both versions without conversion copies objects field by field, and drops the fields that the
other version does not have: a ClusterQueue of v1beta1 loses its ``admissionChecks``, and jobs are admitted past them.
:func:`check_definitions` refuses to work on such definitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from drachma import errors
from drachma.client import Client, target
from drachma.process import webhookplace
from drachma.process.webhookplace import Place
from drachma.runtime import Surroundings
from drachma.server import status
from drachma.server.kinds.kueue import queuekinds, topologyforms, versionforms

PATH: Final = "convert"
_MOST_OBJECTS: Final = 10_000
_EXPANSION_BYTES: Final = 32 << 20
"""Bytes that all topology assignments of an answer may take in v1beta1, which has no compact form for them."""
_VERSIONS: Final = ("v1beta1", "v1beta2")
_CONVERTED: Final = ("clusterqueues", "localqueues", "workloads")
"""Resources whose versions have different fields."""

_DEFINITIONS: Final = target.metadata_of(
    "apiextensions.k8s.io", "v1", plural="customresourcedefinitions", kind="CustomResourceDefinition", namespaced=False
)


def review(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to a ConversionReview. Raises DecodeError for a body that is none."""
    request = body.get("request")
    if body.get("kind") != "ConversionReview" or not isinstance(request, Mapping):
        raise errors.DecodeError("expected a ConversionReview with a request")
    desired, objects = request.get("desiredAPIVersion"), request.get("objects") or []
    if not isinstance(desired, str) or not isinstance(objects, list) or len(objects) > _MOST_OBJECTS:
        raise errors.DecodeError(f"expected desiredAPIVersion, and a list of at most {_MOST_OBJECTS} objects")
    try:
        expansion = topologyforms.Expansion(_EXPANSION_BYTES)
        converted = [_convert(each, desired, expansion) for each in objects]
        answer: dict[str, Any] = {"convertedObjects": converted, "result": {"status": "Success"}}
    except (errors.InvalidValueError, status.StatusError) as error:
        answer = {"convertedObjects": [], "result": {"status": "Failure", "message": str(error)}}
    response = {"uid": str(request.get("uid", "")), **answer}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response}


def _convert(document: object, desired: str, expansion: topologyforms.Expansion) -> Mapping[str, Any]:
    if not isinstance(document, Mapping):
        raise errors.InvalidValueError("an object to convert is not an object")
    group, _, version = desired.rpartition("/")
    own_group = str(document.get("apiVersion", "")).rpartition("/")[0]
    if group != queuekinds.GROUP or own_group != group or version not in _VERSIONS:
        name = f"{document.get('kind')} of {document.get('apiVersion')}"
        raise errors.InvalidValueError(f"{name}: cannot be converted to {desired}")
    if document.get("apiVersion") == desired:
        return document
    return versionforms.VersionForms(str(document.get("kind"))).convert(document, desired, expansion)


def manifests(place: Place, authority: bytes) -> list[dict[str, Any]]:
    """Return the part of Kueue's definitions that names the webhook, for ``kubectl apply --server-side``.

    They need a field manager of their own, because the manager that installed the definitions owns all other fields.
    """
    client = webhookplace.client_config(place, f"/{PATH}", authority=authority)
    webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
    return [
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{queuekinds.GROUP}"},
            "spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}},
        }
        for plural in _CONVERTED
    ]


async def check_definitions(surroundings: Surroundings) -> None:
    """Refuse definitions that lose fields between versions.

    Nothing is refused on servers without such definitions, or that do not let this account read them.

    Raises:
        errors.InvalidValueError: a definition serves several versions without conversion.
    """
    unconverted = [name for name in _names() if _loses_fields(await _definition(surroundings.client, name))]
    if unconverted:
        raise errors.InvalidValueError(
            f"definitions {', '.join(unconverted)}: v1beta1 and v1beta2 are served without conversion, so that a queue "
            "written in v1beta1 loses its admissionChecks and jobs are admitted past them. Run with --webhooks, and "
            "apply the output of --print-conversion with kubectl apply --server-side --field-manager=drachma -f -, "
            "or stop serving v1beta1"
        )


def _names() -> Iterable[str]:
    return (f"{plural}.{queuekinds.GROUP}" for plural in _CONVERTED)


async def _definition(client: Client, name: str) -> Mapping[str, Any] | None:
    try:
        return await client.get_document(_DEFINITIONS, name)
    except errors.RefusedError:
        return None


def _loses_fields(definition: Mapping[str, Any] | None) -> bool:
    spec = (definition or {}).get("spec") or {}
    versions: Sequence[Mapping[str, Any]] = spec.get("versions") or ()
    served = [each for each in versions if each.get("served")]
    strategy = (spec.get("conversion") or {}).get("strategy", "None")
    return len(served) > 1 and strategy != "Webhook"
