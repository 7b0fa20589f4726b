"""Arguments of plugins in a KubeSchedulerConfiguration, and upstream's rules about them.

Only few arguments change decisions here. All others must have upstream's default value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import structs

from drachma import errors
from drachma.cel.runtime import instants
from drachma.process import scoringarguments
from drachma.scheduler import Settings
from drachma.validation import fielderror
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path

_VERSION: Final = "kubescheduler.config.k8s.io/v1"
_SECOND: Final = 10**9

_FIXED: Final[Mapping[str, Mapping[str, tuple[object, ...]]]] = {
    "DefaultPreemption": {"minCandidateNodesPercentage": (10,), "minCandidateNodesAbsolute": (100,)},
    "InterPodAffinity": {"hardPodAffinityWeight": (1,), "ignorePreferredTermsOfExistingPods": (False,)},
    "NodeAffinity": {"addedAffinity": (None, {})},
    "NodeResourcesFit": {"ignoredResources": (None, []), "ignoredResourceGroups": (None, [])},
    "PodTopologySpread": {"defaultConstraints": (None, []), "defaultingType": ("System",)},
    "VolumeBinding": {"shape": (None, [])},
}
"""Arguments by plugin, with the values that they may have: upstream's defaults."""

_CHANGEABLE: Final = {
    "DynamicResources": ("filterTimeout", "bindingTimeout"),
    "NodeResourcesBalancedAllocation": ("resources",),
    "NodeResourcesFit": ("scoringStrategy",),
    "VolumeBinding": ("bindTimeoutSeconds",),
}
"""Arguments by plugin that may have other values."""


# Upstream's rules


def check(plugin: str, arguments: Mapping[str, Any], at: Path) -> Errors:
    """Yield the errors of upstream's rules about the arguments of a plugin, which has these arguments."""
    match plugin:
        case "DefaultPreemption":
            yield from _check_range(arguments, at, "minCandidateNodesPercentage", most=100)
            yield from _check_range(arguments, at, "minCandidateNodesAbsolute", most=None)
        case "InterPodAffinity":
            yield from _check_range(arguments, at, "hardPodAffinityWeight", most=100)
        case "NodeResourcesBalancedAllocation":
            yield from scoringarguments.check_balance(arguments.get("resources"), at.child("resources"))
        case "PodTopologySpread":
            yield from _check_defaulting(arguments, at.child("defaultingType"))
        case "VolumeBinding":
            seconds = arguments.get("bindTimeoutSeconds", 0)
            if isinstance(seconds, int) and seconds < 0:
                rule = "invalid BindTimeoutSeconds, should not be a negative value"
                yield fielderror.invalid(at.child("bindTimeoutSeconds"), seconds, rule)
        case "DynamicResources":
            if (nanos := _nanoseconds(arguments, at, "filterTimeout")) is not None and nanos < 0:
                value = arguments["filterTimeout"]
                yield fielderror.invalid(at.child("filterTimeout"), value, "must be zero or positive")
            if (nanos := _nanoseconds(arguments, at, "bindingTimeout")) is not None and nanos < _SECOND:
                value = arguments["bindingTimeout"]
                yield fielderror.invalid(at.child("bindingTimeout"), value, "must be at least 1 second")


def _check_range(arguments: Mapping[str, Any], at: Path, field: str, *, most: int | None) -> Errors:
    value = arguments.get(field, 0)
    if isinstance(value, int) and (value < 0 or (most is not None and value > most)):
        limits = "[0, inf)" if most is None else f"[0, {most}]"
        yield fielderror.invalid(at.child(field), value, f"not in valid range {limits}")


def _check_defaulting(arguments: Mapping[str, Any], at: Path) -> Errors:
    defaulting = arguments.get("defaultingType", "System")
    if defaulting not in ("System", "List"):
        yield fielderror.not_supported(at, defaulting, ("System", "List"))
    elif defaulting == "System" and arguments.get("defaultConstraints"):
        yield fielderror.invalid(at, defaulting, "when .defaultConstraints are not empty")


def check_plugin(plugin: str, arguments: Mapping[str, Any]) -> Errors:
    """Yield the errors that upstream finds only when it builds a plugin."""
    if plugin == "NodeResourcesFit" and isinstance(strategy := arguments.get("scoringStrategy"), dict):
        yield from scoringarguments.check_strategy(strategy, Path("scoringStrategy"))


# Values here


def check_names(plugin: str, arguments: Mapping[str, Any], place: str) -> None:
    """Refuse arguments that a plugin does not have. Raises errors.InvalidValueError."""
    if plugin not in _FIXED and plugin not in _CHANGEABLE:
        # Upstream hands arguments of other plugins on, and nothing reads them.
        return
    for key, value in arguments.items():
        if key in ("apiVersion", "kind"):
            expected_value = _VERSION if key == "apiVersion" else f"{plugin}Args"
            if value != expected_value:
                raise errors.InvalidValueError(f"{place}.args.{key}: {value!r}: expected {expected_value!r}")
        elif key not in _FIXED.get(plugin, ()) and key not in _CHANGEABLE.get(plugin, ()):
            raise errors.InvalidValueError(
                f"strict decoding error: decoding .{place}: strict decoding error: decoding args for plugin {plugin}: "
                f'strict decoding error: unknown field "{key}"'
            )


def apply(settings: Settings, plugin: str, arguments: Mapping[str, Any], place: str) -> Settings:
    """Return settings with the arguments of one plugin. Raises errors.InvalidValueError for values that only upstream
    supports.
    """
    at = Path(f"{place}.args")
    fixed = _FIXED.get(plugin, {})
    for key, value in arguments.items():
        if key in fixed:
            if value not in fixed[key]:
                rule = f"not supported by drachma; expected {fixed[key][-1]!r}"
                raise errors.InvalidValueError(str(fielderror.invalid(at.child(key), value, rule)))
        elif (plugin, key) == ("DynamicResources", "filterTimeout"):
            settings = structs.replace(settings, filter_seconds=_seconds(arguments, at, key))
        elif (plugin, key) == ("DynamicResources", "bindingTimeout"):
            settings = structs.replace(settings, binding_seconds=_seconds(arguments, at, key))
        elif (plugin, key) == ("VolumeBinding", "bindTimeoutSeconds"):
            if not isinstance(value, int):
                raise errors.InvalidValueError(f"{at.child(key)}: {value!r}: expected a number of seconds")
            settings = structs.replace(settings, volume_binding_seconds=float(value))
        elif (plugin, key) == ("NodeResourcesFit", "scoringStrategy"):
            if not isinstance(value, dict):
                raise errors.InvalidValueError(f"{at.child(key)}: {value!r}: expected an object")
            strategy = scoringarguments.convert_strategy(value)
            settings = structs.replace(settings, plugins=structs.replace(settings.plugins, strategy=strategy))
        elif (plugin, key) == ("NodeResourcesBalancedAllocation", "resources"):
            resources = scoringarguments.convert_resources(value)
            plugins = structs.replace(settings.plugins, balanced_resources=resources)
            settings = structs.replace(settings, plugins=plugins)
    return settings


def _nanoseconds(arguments: Mapping[str, Any], at: Path, field: str) -> int | None:
    value = arguments.get(field)
    if value is None:
        return None
    duration = instants.parse_duration(value) if isinstance(value, str) else None
    if duration is None:
        raise errors.InvalidValueError(f'{at.child(field)}: time: invalid duration "{value}"')
    return duration.nanos


def _seconds(arguments: Mapping[str, Any], at: Path, field: str) -> float:
    return (_nanoseconds(arguments, at, field) or 0) / _SECOND
