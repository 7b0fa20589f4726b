"""The configuration from a ConfigMap, as KEP-2941 has it: put in force whenever it changes, without a restart.

What cannot be is refused, with an event about the ConfigMap; the configuration before stays in force.
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

NAME: Final = "kueue-controller-manager-config"
SELECTION: Final = Selection(namespace=configuration.DEFAULT_NAMESPACE, fields=f"metadata.name={NAME}")
"""The ConfigMap, wherever it is read."""
FIELDS: Final = ("controller_manager_config.yaml", "config.yaml")
"""Where the configuration is: as Kueue's manifests have it, and as the KEP does."""
POLICY_FIELD: Final = "queueing_policy.yaml"
"""Where a QueueingPolicy may be, which Kueue would not read."""

_log = logging.getLogger(__name__)


class ConfigurationMap:
    """Follows the ConfigMap of one name."""

    def __init__(self, surroundings: Surroundings, active: ActiveConfiguration, *, recorder: events.Recorder) -> None:
        self._active: Final = active
        self._recorder: Final = recorder
        surroundings.informers.of(configmap.ConfigMap, SELECTION).add_handler(
            Handler(added=self._offer, updated=lambda _, new: self._offer(new), deleted=self._withdraw)
        )

    def _offer(self, of: configmap.ConfigMap) -> None:
        try:
            if self._active.offer(*documents(of)):
                self._tell(of, events.NORMAL, "ConfigurationChanged", in_force(self._active))
        except RefusedConfigurationError as error:
            _log.warning("ConfigMap %s: refused, the configuration before stays in force: %s", of.metadata.name, error)
            self._tell(of, events.WARNING, "InvalidConfiguration", f"Refused, the one before stays: {error}")

    def _withdraw(self, of: configmap.ConfigMap) -> None:
        """What is in force is what a process that starts now would have in force."""
        self._active.offer(configurationform.DEFAULT)
        _log.warning("ConfigMap %s: is gone, the default configuration is in force", of.metadata.name)

    def _tell(self, of: configmap.ConfigMap, kind: events.Type, reason: str, message: str) -> None:
        self._recorder.record(of, type=kind, reason=reason, message=message)


def in_force(active: ActiveConfiguration) -> str:
    """What is told of a configuration that has taken effect."""
    ignored = ", ".join(active.ignored_frameworks)
    told = "The configuration is in force"
    return f"{told}; jobs of these frameworks are not held back here: {ignored}" if ignored else told


def documents(of: configmap.ConfigMap) -> list[dict[str, object]]:
    """What a ConfigMap says, to be offered; RefusedConfigurationError if it says nothing that can be read."""
    field = next((each for each in FIELDS if each in of.data), None)
    if field is None:
        raise RefusedConfigurationError(f"data: none of {', '.join(FIELDS)} is there")
    policy = parse(of.data[POLICY_FIELD]) if POLICY_FIELD in of.data else []
    return [*parse(of.data[field]), *policy]


def parse(text: str) -> list[dict[str, object]]:
    """The documents of a text; RefusedConfigurationError if it cannot be read, or if one of them is no object."""
    try:
        documents = [each.content for each in manifest.read(text)]
    except errors.DrachmaError as error:
        raise RefusedConfigurationError(str(error)) from None
    for document in documents:
        if not isinstance(document, dict):
            raise RefusedConfigurationError(f"expected an object with apiVersion and kind, there is {document!r}")
    return documents
