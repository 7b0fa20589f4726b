"""The pod that a job makes: its template with all its fields, an owner, the finalizer, and perhaps an index. Pure."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from drachma.controllers.job import indexes, tally
from drachma.controllers.workload import podtemplates

_ENVIRONMENT_VARIABLE: Final = "JOB_COMPLETION_INDEX"
_LONGEST_PREFIX: Final = 58


class Place(NamedTuple):
    """What a new pod is for: the number of an indexed job, and what its annotations say of it beside."""

    number: int | None = None
    marks: Mapping[str, str] = {}


def pod_document(job: Mapping[str, Any], place: Place) -> dict[str, Any]:
    """A pod for a job document, as it is created."""
    name = job["metadata"]["name"]
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": name,
        "uid": job["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    document = podtemplates.pod_document(job["spec"]["template"], owner=owner, namespace=job["metadata"]["namespace"])
    metadata, spec = document["metadata"], document["spec"]
    metadata["finalizers"] = list(dict.fromkeys((*metadata["finalizers"], tally.FINALIZER)))
    metadata["annotations"] |= place.marks
    index = place.number
    if index is not None:
        metadata["generateName"] = _prefix(name, index)
        metadata["labels"][indexes.LABEL] = metadata["annotations"][indexes.LABEL] = str(index)
        spec["hostname"] = f"{name}-{index}"
        for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
            _tell_index(container)
    return document


def _prefix(name: str, index: int) -> str:
    suffix = f"-{index}-"
    return name[: _LONGEST_PREFIX - len(suffix)] + suffix


def _tell_index(container: dict[str, Any]) -> None:
    variables = container.setdefault("env", [])
    if not any(each.get("name") == _ENVIRONMENT_VARIABLE for each in variables):
        source = {"fieldRef": {"fieldPath": f"metadata.labels['{indexes.LABEL}']"}}
        variables.append({"name": _ENVIRONMENT_VARIABLE, "valueFrom": source})
