"""Queues, workloads and what is around them from files: manifests, or what was dumped from a server.

Objects of kinds that admission does not depend on are passed over. Refused, each with its place: what cannot be read,
and objects that are given twice.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple

from msgspec import structs

from drachma import errors
from drachma.api import codec, defaults, meta, scheme
from drachma.offline import clusterdump, manifestfiles
from drachma.queueing.component import resources
from drachma.queueing.kinds import decoding
from drachma.server.kinds.kueue import versionforms
from drachma.server.pipeline import verdict
from drachma.simulate import queueingstate


class QueueingFiles(NamedTuple):
    """What files hold; nothing in it is to be trusted where there are problems."""

    objects: tuple[meta.Object, ...]
    problems: tuple[str, ...]


def read(paths: list[str]) -> QueueingFiles:
    """All that is in these files and folders."""
    kinds = queueingstate.models()
    objects: dict[tuple[str, str], meta.Object] = {}
    problems: list[str] = []
    for source in manifestfiles.read(paths, max_bytes=clusterdump.MAX_BYTES):
        if isinstance(source, manifestfiles.Unreadable):
            problems.append(str(source))
            continue
        try:
            api_version, kind = codec.type_meta(source.content)
            resource = kinds.get((api_version.rpartition("/")[0], kind))
            if resource is None:
                continue
            made = _decoded(source.content, resource)
            title = codec.title(source.content)
            if (kind, title) in objects:
                raise errors.DecodeError(f"{title}: is given twice")
            objects[kind, title] = made
        except errors.DrachmaError as error:
            problems.append(f"{source.place}: {error}")
    return QueueingFiles(tuple(objects.values()), tuple(problems))


def _decoded(document: Any, resource: Any) -> meta.Object:
    if scheme.has(resource.model):
        made = defaults.apply(codec.decode(document), now=datetime.now(UTC))
    else:
        if resource.group == resources.GROUP and document["apiVersion"] != versionforms.NEWER:
            document = versionforms.VersionForms(resource.kind).convert(document, versionforms.NEWER)
        made = decoding.decode(document, resource.model)
    if not made.metadata.name:
        raise errors.DecodeError(f"{codec.title(document)}: metadata.name: required")
    if resource.namespaced and not made.metadata.namespace:
        made = structs.replace(made, metadata=structs.replace(made.metadata, namespace=verdict.DEFAULT_NAMESPACE))
    return made
