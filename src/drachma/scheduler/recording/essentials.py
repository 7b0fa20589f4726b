"""Objects reduced to what decisions read: without commands and environment of containers.

Called before objects are recorded or dumped. Commands and environment variables may hold secrets, and kubectl's
annotation repeats all of them. No decision reads these fields, nor ``managedFields``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

from msgspec import structs

from drachma.api import job, meta, pod, struct

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

ObjectT = TypeVar("ObjectT", bound=meta.Object)


def of(original: ObjectT) -> ObjectT:
    """Return the object without the fields that no decision reads."""
    metadata = original.metadata
    if metadata.managed_fields or LAST_APPLIED in metadata.annotations:
        annotations = {key: value for key, value in metadata.annotations.items() if key != LAST_APPLIED}
        metadata = structs.replace(metadata, managed_fields=struct.ABSENT_TUPLE, annotations=annotations)
        original = structs.replace(original, metadata=metadata)
    if isinstance(original, pod.Pod):
        original = structs.replace(original, spec=_strip_commands(original.spec))
    elif isinstance(original, job.Job):
        template = structs.replace(original.spec.template, spec=_strip_commands(original.spec.template.spec))
        original = structs.replace(original, spec=structs.replace(original.spec, template=template))
    return original


def _strip_commands(spec: pod.PodSpec) -> pod.PodSpec:
    return structs.replace(
        spec,
        containers=_bare(spec.containers),
        init_containers=_bare(spec.init_containers) or struct.ABSENT_TUPLE,
    )


def _bare(containers: Iterable[pod.Container]) -> tuple[pod.Container, ...]:
    return tuple(
        structs.replace(
            each,
            command=struct.ABSENT_TUPLE,
            args=struct.ABSENT_TUPLE,
            env=struct.ABSENT_TUPLE,
            working_dir=struct.ABSENT_TEXT,
        )
        for each in containers
    )
