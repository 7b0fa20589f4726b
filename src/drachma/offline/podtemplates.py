"""Pod templates as the API server would complete and accept them, for pods that are simulated and never created."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from drachma import errors
from drachma.api import codec, gates, pod
from drachma.server import status
from drachma.server.kinds.core import podcompletion


def read_spec(template: Mapping[str, Any]) -> pod.PodSpec:
    """Return the pod spec of a template, with defaults. Raises DecodeError with the server's reasons if it is wrong."""
    spec = template.get("spec")
    if not isinstance(spec, Mapping):
        raise errors.DecodeError("spec: required")
    containers = spec.get("containers")
    if isinstance(containers, list):
        # What a container runs does not matter to scheduling, so the image may be left out.
        spec = {
            **spec,
            "containers": [
                {"image": "simulated", **each} if isinstance(each, Mapping) else each for each in containers
            ],
        }
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "simulated", "namespace": "default", **_labels(template)},
        "spec": spec,
    }
    try:
        completed = podcompletion.PodCompleter(gates.ALL).complete(document, now=datetime.now(UTC))
    except status.StatusError as refusal:
        raise errors.DecodeError(str(refusal.document["message"])) from None
    decoded = codec.decode(completed)
    assert isinstance(decoded, pod.Pod), "a pod is completed"
    return decoded.spec


def _labels(template: Mapping[str, Any]) -> dict[str, Any]:
    metadata = template.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
    return {"labels": labels} if labels else {}
