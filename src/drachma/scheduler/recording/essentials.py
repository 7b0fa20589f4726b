"""Objects as decisions need them, to be sent to somebody else: without what containers run, and with what.

Called before objects are recorded or dumped. Commands and environment variables may hold secrets, and kubectl's
annotation holds all of them once more; no decision looks at any of it, nor at who owns which field.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

from msgspec import structs

from drachma.api import job, meta, pod, struct

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

ObjectT = TypeVar("ObjectT", bound=meta.Object)


def of(given: ObjectT) -> ObjectT:
    """The object without what no decision reads."""
    metadata = given.metadata
    if metadata.managed_fields or LAST_APPLIED in metadata.annotations:
        annotations = {key: value for key, value in metadata.annotations.items() if key != LAST_APPLIED}
        metadata = structs.replace(metadata, managed_fields=struct.ABSENT_TUPLE, annotations=annotations)
        given = structs.replace(given, metadata=metadata)
    if isinstance(given, pod.Pod):
        given = structs.replace(given, spec=_without_commands(given.spec))
    elif isinstance(given, job.Job):
        template = structs.replace(given.spec.template, spec=_without_commands(given.spec.template.spec))
        given = structs.replace(given, spec=structs.replace(given.spec, template=template))
    return given


def _without_commands(spec: pod.PodSpec) -> pod.PodSpec:
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
