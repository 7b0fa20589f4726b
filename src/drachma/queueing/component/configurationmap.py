"""The configuration from a ConfigMap, which becomes active when it changes, without a restart.

The ConfigMap has the name of Kueue's manifests, or the name that KEP-2941 gives it. An invalid configuration is refused
with an event about the ConfigMap; the previous one stays active.
"""

from __future__ import annotations

import logging
from typing import Final

from drachma import errors
from drachma.api import configmap, manifest
from drachma.client import Selection
from drachma.queueing.component.activeconfiguration import ActiveConfiguration
from drachma.queueing.configuration import configuration, configurationform
from drachma.queueing.configuration.configurationform import RefusedConfigurationError
from drachma.runtime import Surroundings, events
from drachma.runtime.informer import Handler

NAMES: Final = ("kueue-manager-config", "kueue-controller-manager-config")
"""Names of the ConfigMap: that of Kueue's manifests, and that of the KEP. The first that exists counts."""
PUBLISHED: Final = "drachma-queueing-config"
"""Name of the ConfigMap in which a process with a configuration file publishes the file, for drachma explain."""
SELECTION: Final = Selection(namespace=configuration.DEFAULT_NAMESPACE)
"""Selection of the ConfigMaps that may have the configuration."""
FIELDS: Final = ("controller_manager_config.yaml", "config.yaml")
"""Fields with the configuration: that of Kueue's manifests, and that of the KEP."""
POLICY_FIELD: Final = "queueing_policy.yaml"
"""Field with a QueueingPolicy, which Kueue does not read."""

_log = logging.getLogger(__name__)


class ConfigurationMap:
    """Follows the ConfigMap with the configuration."""

    def __init__(self, surroundings: Surroundings, active: ActiveConfiguration, *, recorder: events.Recorder) -> None:
        self._active: Final = active
        self._recorder: Final = recorder
        self._maps: Final[dict[str, configmap.ConfigMap]] = {}
        surroundings.informers.of(configmap.ConfigMap, SELECTION).add_handler(
            Handler.on_write(self._put, deleted=self._withdraw)
        )

    def _put(self, config_map: configmap.ConfigMap) -> None:
        if config_map.metadata.name in NAMES:
            self._maps[config_map.metadata.name] = config_map
            self._activate(config_map)

    def _current(self) -> configmap.ConfigMap | None:
        return next((self._maps[name] for name in NAMES if name in self._maps), None)

    def _activate(self, config_map: configmap.ConfigMap) -> None:
        if config_map is not self._current():
            return
        try:
            if self._active.offer(*documents(config_map)):
                self._record(config_map, events.NORMAL, "ConfigurationChanged", effect_message(self._active))
        except RefusedConfigurationError as error:
            _log.warning(
                "ConfigMap %s: refused, the previous configuration stays active: %s", config_map.metadata.name, error
            )
            self._record(
                config_map,
                events.WARNING,
                "InvalidConfiguration",
                f"Refused, the previous configuration stays active: {error}",
            )

    def _withdraw(self, config_map: configmap.ConfigMap) -> None:
        """Return to the other ConfigMap, or to the default configuration, which a new process would start with."""
        was_current = config_map.metadata.name in self._maps and self._current() is self._maps[config_map.metadata.name]
        self._maps.pop(config_map.metadata.name, None)
        if not was_current:
            return
        other = self._current()
        if other is not None:
            self._activate(other)
            return
        self._active.offer(configurationform.DEFAULT)
        _log.warning("ConfigMap %s: was deleted, the default configuration is active", config_map.metadata.name)

    def _record(self, config_map: configmap.ConfigMap, kind: events.Type, reason: str, message: str) -> None:
        self._recorder.record(config_map, type=kind, reason=reason, message=message)


def effect_message(active: ActiveConfiguration) -> str:
    """Return the message of the event about a configuration that became active."""
    ignored = ", ".join(active.ignored_frameworks)
    message = "The configuration is active"
    return f"{message}; jobs of these frameworks are not managed: {ignored}" if ignored else message


def documents(config_map: configmap.ConfigMap) -> list[dict[str, object]]:
    """Return the documents of a ConfigMap. Raises RefusedConfigurationError if there is none that can be read."""
    field = next((each for each in FIELDS if each in config_map.data), None)
    if field is None:
        raise RefusedConfigurationError(f"data: expected one of {', '.join(FIELDS)}")
    policy = parse(config_map.data[POLICY_FIELD]) if POLICY_FIELD in config_map.data else []
    return [*parse(config_map.data[field]), *policy]


def parse(text: str) -> list[dict[str, object]]:
    """Return the documents of a text. Raises RefusedConfigurationError if it cannot be read or one is not an object."""
    try:
        documents = [each.content for each in manifest.read(text)]
    except errors.DrachmaError as error:
        raise RefusedConfigurationError(str(error)) from None
    for document in documents:
        if not isinstance(document, dict):
            raise RefusedConfigurationError(f"expected an object with apiVersion and kind, got {document!r}")
    return documents
