"""Queues, workloads and related objects from files: manifests or dumps of a server.

Objects of kinds that admission does not depend on are ignored. Unreadable objects and objects given twice are problems,
reported with their place.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from drachma.api import codec, defaults, meta, scheme
from drachma.offline import manifestfiles, objectfiles
from drachma.queueing.component import resources
from drachma.queueing.kinds import decoding
from drachma.server.kinds.kueue import versionforms
from drachma.simulate import queueingstate


class QueueingFiles(NamedTuple):
    """Content of files. If there are problems, the rest must not be used."""

    objects: tuple[meta.Object, ...]
    problems: tuple[str, ...]


def read(paths: list[str]) -> QueueingFiles:
    """Return the objects in files and folders."""
    files = objectfiles.ObjectFiles()
    sources: list[manifestfiles.Source] = []
    files.read(paths, sources.append)
    return decode(sources, files)


def decode(sources: Iterable[manifestfiles.Source], files: objectfiles.ObjectFiles | None = None) -> QueueingFiles:
    """Return the objects of documents, with the problems of the files that they were read from."""
    files = files or objectfiles.ObjectFiles()
    kinds = queueingstate.models()
    objects: list[meta.Object] = []

    def take(source: manifestfiles.Source) -> None:
        if not source.kind or not source.api_version:
            codec.type_meta(source.content)
        api_version, kind = source.api_version, source.kind
        resource = kinds.get((api_version.rpartition("/")[0], kind))
        if resource is not None:
            decoded = _decoded(source.content, resource, now=files.now)
            objects.append(files.accept(source, decoded, namespaced=resource.namespaced))

    for source in sources:
        files.attempt(source, take)
    return QueueingFiles(tuple(objects), tuple(files.problems))


def _decoded(document: Any, resource: Any, *, now: datetime) -> meta.Object:
    if scheme.has(resource.model):
        return defaults.apply(codec.decode(document), now=now)
    if resource.group == resources.GROUP and document["apiVersion"] != versionforms.NEWER:
        document = versionforms.VersionForms(resource.kind).convert(document, versionforms.NEWER)
    decoded: meta.Object = decoding.decode(document, resource.model)
    return decoded
