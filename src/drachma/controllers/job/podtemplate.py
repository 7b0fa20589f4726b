"""The pod that a job makes: its template with all its fields, an owner, the finalizer, and perhaps an index. Pure."""

import copy
from collections.abc import Mapping
from typing import Any, Final

from drachma.controllers.job import indexes, tally

_ENVIRONMENT_VARIABLE: Final = "JOB_COMPLETION_INDEX"
_LONGEST_PREFIX: Final = 58


def pod_document(job: Mapping[str, Any], *, index: int | None) -> dict[str, Any]:
    """A pod for a job document, as it is created."""
    template = copy.deepcopy(job["spec"]["template"])
    given = template.get("metadata") or {}
    name, uid = job["metadata"]["name"], job["metadata"]["uid"]
    metadata: dict[str, Any] = {
        "generateName": f"{name}-",
        "namespace": job["metadata"]["namespace"],
        "labels": given.get("labels") or {},
        "annotations": given.get("annotations") or {},
        "finalizers": list(dict.fromkeys((*(given.get("finalizers") or ()), tally.FINALIZER))),
        "ownerReferences": [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": name,
                "uid": uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    spec = template.get("spec") or {}
    if index is not None:
        metadata["generateName"] = _prefix(name, index)
        metadata["labels"][indexes.LABEL] = metadata["annotations"][indexes.LABEL] = str(index)
        spec["hostname"] = f"{name}-{index}"
        for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
            _tell_index(container)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _prefix(name: str, index: int) -> str:
    suffix = f"-{index}-"
    return name[: _LONGEST_PREFIX - len(suffix)] + suffix


def _tell_index(container: dict[str, Any]) -> None:
    variables = container.setdefault("env", [])
    if not any(each.get("name") == _ENVIRONMENT_VARIABLE for each in variables):
        source = {"fieldRef": {"fieldPath": f"metadata.labels['{indexes.LABEL}']"}}
        variables.append({"name": _ENVIRONMENT_VARIABLE, "valueFrom": source})
