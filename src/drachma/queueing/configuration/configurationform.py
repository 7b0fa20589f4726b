"""Conversion of a document, in either version, to a configuration: decoded, defaulted and validated, or refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import structs

from drachma import errors
from drachma.api import labelselectors, shape
from drachma.queueing.configuration import configrules, configuration, durations
from drachma.queueing.configuration.configuration import Configuration
from drachma.queueing.configuration.queueingpolicy import AS_KUEUE, QueueingPolicy
from drachma.values import quotation

KIND: Final = "Configuration"
_NEWER, _OLDER = configuration.API_VERSIONS
DEFAULT: Final[Mapping[str, Any]] = {"apiVersion": _NEWER, "kind": KIND}
"""A document without settings."""
_SWITCHED: Final = ("fairSharing", "waitForPodsReady")
"""Parts that have an ``enable`` switch in the older version; the newer version leaves them out instead."""
_OLDER_DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "fairSharing": {"preemptionStrategies": ("LessThanOrEqualToFinalShare", "LessThanInitialShare")},
    "waitForPodsReady": {"timeout": "5m0s", "blockAdmission": True},
}
"""Defaults of these parts in the older version."""
_ENVELOPE: Final = frozenset({"apiVersion", "kind"})
_ONLY_OLDER: Final = frozenset(
    {"queueVisibility", "integrations.podOptions", *(f"{part}.enable" for part in _SWITCHED)}
)
"""Fields that the newer version no longer has."""
_ONLY_NEWER: Final = (
    "visibilityServer",
    "metrics.customLabels[].sourceKind",
    "metrics.customLabels[].trackedValues",
    "multiKueue.clusterProfile",
    "multiKueue.incrementalDispatcherConfig",
    "resources.quotaCheckStrategy",
    "resources.deviceClassMappings[].sources",
)
"""Fields that the older version does not have."""
_DURATIONS: Final = (
    "waitForPodsReady.timeout",
    "waitForPodsReady.recoveryTimeout",
    "multiKueue.gcInterval",
    "multiKueue.workerLostTimeout",
    "admissionFairSharing.usageHalfLifeTime",
    "admissionFairSharing.usageSamplingInterval",
    "objectRetentionPolicies.workloads.afterFinished",
    "objectRetentionPolicies.workloads.afterDeactivatedByKueue",
    "leaderElection.leaseDuration",
    "leaderElection.renewDeadline",
    "leaderElection.retryPeriod",
)


class RefusedConfigurationError(errors.InvalidValueError):
    """A configuration that cannot become active."""


def read(document: Mapping[str, Any], policy: QueueingPolicy = AS_KUEUE) -> Configuration:
    """Return the configuration of a document with its defaults.

    Raises:
        RefusedConfigurationError: with all problems of the document.
    """
    api_version, kind = document.get("apiVersion"), document.get("kind")
    if api_version not in configuration.API_VERSIONS or kind != KIND:
        choice = " or ".join(configuration.API_VERSIONS)
        raise RefusedConfigurationError(f"kind {kind!r} of {api_version!r}: expected {KIND} of {choice}")
    is_older = api_version == _OLDER
    examined_document = _well_formed(document, is_older=is_older)
    switches = {part: _is_enabled(document, part) for part in _SWITCHED} if is_older else {}
    try:
        completed = configuration.default(configuration.decode(_switched(examined_document, switches)))
        if not switches.get("waitForPodsReady", True):
            completed = structs.replace(completed, wait_for_pods_ready=None)
        problems = list(map(str, configrules.check(completed, gates=completed.gates, policy=policy)))
        problems += _local_queue_selector(completed)
    except (errors.DecodeError, errors.InvalidValueError) as error:
        raise RefusedConfigurationError(str(error)) from None
    if problems:
        raise RefusedConfigurationError("; ".join(problems))
    return completed


def _well_formed(document: Mapping[str, Any], *, is_older: bool) -> dict[str, Any]:
    """Return the document without nulls and unknown fields.

    Raises:
        RefusedConfigurationError: values have wrong types, or fields do not exist in its version.
    """
    examined = shape.examine(document, Configuration, allowed_names=_ENVELOPE)
    problems = list(map(str, examined.mismatches))
    v2_document: dict[str, Any] = examined.document
    if not problems:
        problems = [
            f"{path}: {error}"
            for path in _DURATIONS
            for _, text in _values(v2_document, path)
            if (error := _misspelt(text))
        ]
    if problems:
        raise RefusedConfigurationError("; ".join(problems))
    unknown = list(examined.unknown)
    if is_older:
        unknown = [each for each in unknown if each not in _ONLY_OLDER]
        unknown += [path for each in _ONLY_NEWER for path, _ in _values(v2_document, each)]
    if unknown:
        fields = ", ".join(f"unknown field {quotation.quote(each)}" for each in sorted(unknown))
        raise RefusedConfigurationError(f"strict decoding error: {fields}")
    return v2_document


def _misspelt(duration: str) -> str:
    try:
        durations.nanoseconds(duration)
    except errors.InvalidValueError as error:
        return str(error)
    return ""


def _values(document: Any, path: str, *, at: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a document at a path with their positions; ``[]`` stands for all items of a list."""
    name, _, tail = path.partition(".")
    field = name.removesuffix("[]")
    if field not in document:
        return
    here, value = f"{at}{field}", document[field]
    if field != name:
        for index, each in enumerate(value):
            yield from _values(each, tail, at=f"{here}[{index}].")
    elif tail:
        yield from _values(value, tail, at=f"{here}.")
    else:
        yield here, value


def _local_queue_selector(configuration: Configuration) -> Iterator[str]:
    """Return the problem that ends Kueue's manager at its start, after its rules."""
    local = configuration.metrics.local_queue_metrics
    if local is not None:
        try:
            labelselectors.of(local.local_queue_selector)
        except errors.InvalidValueError as error:
            yield f"metrics.localQueueMetrics.localQueueSelector: {error}"


def _is_enabled(document: Mapping[str, Any], part: str) -> bool:
    return bool((document.get(part) or {}).get("enable"))


def _switched(document: Mapping[str, Any], switches: Mapping[str, bool]) -> dict[str, Any]:
    """Return the document without parts that the older version switches off, and with its defaults for the others."""
    enabled = {name: part for name, part in document.items() if switches.get(name, True)}
    for name, defaults in _OLDER_DEFAULTS.items():
        if switches.get(name):
            enabled[name] = {
                **defaults,
                **{field: value for field, value in enabled[name].items() if value not in ("", [])},
            }
    return enabled
