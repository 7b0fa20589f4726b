"""Kueue's manifests without a server: its kinds and webhooks, its Configuration, and the ConfigMap that has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from drachma import errors
from drachma.api import codec, configmap
from drachma.process import queueing
from drachma.queueing.component import ActiveConfiguration, PendingView, configurationmap
from drachma.queueing.configuration import configuration, queueingpolicy
from drachma.server.wire import app

_CONFIG_MAP: Final = ("v1", "ConfigMap")


class KueueManifests:
    """Checks of one set of manifests. The configuration among them decides about the jobs that queues manage."""

    def __init__(self) -> None:
        self._active: Final = ActiveConfiguration()

    def additions(self) -> app.Additions:
        """Return Kueue's kinds and webhooks for an API server."""
        return queueing.additions(self._active, PendingView())

    def is_configuration(self, document: object) -> bool:
        """Return True for a Configuration of Kueue or a QueueingPolicy, which no API server serves."""
        if not isinstance(document, Mapping):
            return False
        is_kueues = document.get("apiVersion") in configuration.API_VERSIONS and document.get("kind") == "Configuration"
        return is_kueues or queueingpolicy.is_policy(document)

    def configuration_problem(self, document: Mapping[str, Any]) -> str:
        """Return why queueing would refuse a configuration or policy; empty if it would accept it."""
        try:
            if queueingpolicy.is_policy(document):
                problems = queueingpolicy.read(document)
                return "; ".join(map(str, problems)) if isinstance(problems, tuple) else ""
            self._active.offer(document)
        except errors.InvalidValueError as error:
            return str(error)
        return ""

    def config_map_problem(self, document: Mapping[str, Any]) -> str:
        """Return why queueing would refuse the configuration in its ConfigMap; empty for all other objects."""
        if (document.get("apiVersion"), document.get("kind")) != _CONFIG_MAP:
            return ""
        config_map = codec.decode(dict(document))
        if not isinstance(config_map, configmap.ConfigMap) or config_map.metadata.name not in configurationmap.NAMES:
            return ""
        try:
            self._active.offer(*configurationmap.documents(config_map))
        except errors.InvalidValueError as error:
            return str(error)
        return ""
