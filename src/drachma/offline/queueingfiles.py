"""Queues, workloads and what is around them from files: manifests, or what was dumped from a server.

Objects of kinds that admission does not depend on are passed over. Refused, each with its place: what cannot be read,
and objects that are given twice.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from drachma.api import codec, defaults, meta, scheme
from drachma.offline import manifestfiles, objectfiles
from drachma.queueing.component import resources
from drachma.queueing.kinds import decoding
from drachma.server.kinds.kueue import versionforms
from drachma.simulate import queueingstate


class QueueingFiles(NamedTuple):
    """What files hold; nothing in it is to be trusted where there are problems."""

    objects: tuple[meta.Object, ...]
    problems: tuple[str, ...]


def read(paths: list[str]) -> QueueingFiles:
    """All that is in these files and folders."""
    kinds = queueingstate.models()
    files = objectfiles.ObjectFiles()
    objects: list[meta.Object] = []

    def take(source: manifestfiles.Source) -> None:
        api_version, kind = codec.type_meta(source.content)
        resource = kinds.get((api_version.rpartition("/")[0], kind))
        if resource is not None:
            made = _decoded(source.content, resource, now=files.now)
            objects.append(files.accept(source, made, namespaced=resource.namespaced))

    files.read(paths, take)
    return QueueingFiles(tuple(objects), tuple(files.problems))


def _decoded(document: Any, resource: Any, *, now: datetime) -> meta.Object:
    if scheme.has(resource.model):
        return defaults.apply(codec.decode(document), now=now)
    if resource.group == resources.GROUP and document["apiVersion"] != versionforms.NEWER:
        document = versionforms.VersionForms(resource.kind).convert(document, versionforms.NEWER)
    made: meta.Object = decoding.decode(document, resource.model)
    return made
