"""New pods as the API server would store them, as a pure function: defaults, admission and validation.

Offline commands use it, so that ``drachma explain`` need not assemble a server for one pod. The steps are those of a
create, in the pipeline's order, without the steps that need a cluster: priorities, runtime classes, limit ranges, the
existence of namespaces and accounts, policies, webhooks and quota.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from drachma import errors
from drachma.api import gates as features
from drachma.claims import podsources
from drachma.server import objectmeta, status
from drachma.server.decoding import jsonsyntax
from drachma.server.kinds.core import pod, podspec
from drachma.server.schema import unknownfields
from drachma.server.surface import apisurface, verbs
from drachma.server.surface.consultation import Consultation
from drachma.server.surface.strategy import Environment, Subject, Write
from drachma.server.user import User
from drachma.validation.podspec import pod as pod_rules

if TYPE_CHECKING:
    from drachma.store import protocol, record

_VERSION: Final = "v1"
_GENERATED_SUFFIX: Final = "xxxxx"
_DEFAULT_NAMESPACE: Final = "default"


class PodCompleter:
    """Completes pods under the same feature gates."""

    def __init__(self, gates: features.Gates) -> None:
        environment = Environment(gates=gates, store=_NoStore())
        self._surface: Final = apisurface.ApiSurface((pod.KIND,), environment=environment)
        self._rng: Final = random.Random()

    def complete(self, document: Mapping[str, Any], *, now: datetime) -> dict[str, Any]:
        """Return the document that a server would store for a new pod, with an empty status.

        Raises:
            status.StatusError: a server would refuse the pod.
        """
        write = self._write(document, now)
        subject = self._read(document, write)
        metadata = subject.metadata
        objectmeta.place(metadata, write.namespace)
        objectmeta.merge_owners(metadata, write.warnings)
        objectmeta.wipe_system_fields(metadata)
        metadata.pop("managedFields", None)
        spec = subject.content["spec"]
        if pod_rules.MIRROR_ANNOTATION not in (metadata.get("annotations") or ()):
            spec = podspec.with_account(spec)
        subject.content = {**subject.content, "spec": podspec.with_tolerations(spec)}
        if metadata.get("generateName") and not metadata.get("name"):
            metadata["name"] = f"{metadata['generateName']}{_GENERATED_SUFFIX}"
        objectmeta.fill_system_fields(metadata, uid=objectmeta.generate_uid(self._rng), now=now)
        strategy = write.served.strategy
        strategy.create(subject, write)
        return strategy.document(subject)

    def _read(self, document: Mapping[str, Any], write: Write) -> Subject:
        """Return the pod with defaults. Raises status.StatusError for wrong types and unknown fields."""
        # A copy with the values of JSON, because defaults are set in place.
        copied = podsources.lift_sources(jsonsyntax.read(msgspec.json.encode(document)))
        unknown = unknownfields.unknown_fields(copied, write.resource.schema(_VERSION))
        try:
            subject = write.served.strategy.read(copied, write)
        except errors.DecodeError as error:
            raise status.unfit(write.resource.kind, _VERSION, str(error)) from None
        if unknown:
            problem = f"strict decoding error: {', '.join(unknown)}"
            raise status.unfit(write.resource.kind, _VERSION, problem)
        return subject

    def _write(self, document: Mapping[str, Any], now: datetime) -> Write:
        metadata = document.get("metadata")
        namespace = metadata.get("namespace") if isinstance(metadata, dict) else ""
        return Write(
            surface=self._surface,
            served=self._surface.served(pod.KIND),
            resource=pod.KIND,
            version=_VERSION,
            namespace=namespace if isinstance(namespace, str) and namespace else _DEFAULT_NAMESPACE,
            name="",
            subresource="",
            verb=verbs.CREATE,
            user=User(name="drachma"),
            user_agent="drachma",
            now=now,
            warnings=[],
            annotations={},
            consultation=Consultation(),
        )


class _NoStore:
    """Store of a completer; the rules of pods read no other objects."""

    def get(self, key: record.Key) -> record.Record | None:
        return None

    def list(self, resource: str, namespace: str | None) -> protocol.Page:
        raise NotImplementedError("pods are completed without a store")
