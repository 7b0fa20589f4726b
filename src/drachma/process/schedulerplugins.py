"""Plugins of a profile in a KubeSchedulerConfiguration: enabled, disabled and weighted, by extension point."""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping
from typing import Final

from msgspec import structs

from drachma import errors
from drachma.process.schedulerforms import PluginForm, PluginSetForm, PluginsForm
from drachma.runtime import clock
from drachma.scheduler import Settings, profiles
from drachma.scheduler.framework.profile import Entry
from drachma.scheduler.settings import PluginSettings

_ALL: Final = "*"
_SCORE: Final = "Score"
_HIGHEST_SCORE: Final = 100
_HIGHEST_TOTAL: Final = 2**63 - 1

_POINTS: Final[Mapping[str, str]] = {
    "DefaultBinder": "bind",
    "DefaultPreemption": "preEnqueue postFilter",
    "DeferredPodScheduling": "preFilter filter permit",
    "DynamicResources": "preEnqueue preFilter filter postFilter score reserve preBind",
    "GangScheduling": "preEnqueue permit",
    "ImageLocality": "score",
    "InterPodAffinity": "preFilter filter preScore score",
    "NodeAffinity": "preFilter filter preScore score",
    "NodeDeclaredFeatures": "preFilter filter",
    "NodeName": "preFilter filter",
    "NodePorts": "preFilter filter",
    "NodeResourcesBalancedAllocation": "preScore score",
    "NodeResourcesFit": "preFilter filter preScore score",
    "NodeUnschedulable": "preFilter filter",
    "NodeVolumeLimits": "preFilter filter",
    "PodGroupPodsCount": "",
    "PodTopologySpread": "preFilter filter preScore score",
    "PrioritySort": "queueSort",
    "SchedulingGates": "preEnqueue",
    "TaintToleration": "preFilter filter preScore score",
    "TopologyPlacementGenerator": "",
    "VolumeBinding": "preFilter filter preScore score reserve preBind",
    "VolumeRestrictions": "preFilter filter",
    "VolumeZone": "preFilter filter",
}
"""Extension points of upstream's plugins. Here a plugin may do the same work at fewer points."""

_ALWAYS_ON: Final = {"queueSort": "PrioritySort", "bind": "DefaultBinder"}
"""Plugins of upstream that are part of the scheduler here, by their extension point."""

_log = logging.getLogger(__name__)


def check(form: PluginsForm, *, name: str, prefix: str) -> None:
    """Check plugins as upstream does when it creates a profile. Raises errors.InvalidValueError."""
    sets: dict[str, PluginSetForm] = {
        each.encode_name: getattr(form, each.name) for each in structs.fields(PluginsForm)
    }
    multi_point = sets.pop("multiPoint")
    for point, plugins in sets.items():
        kind = f"{_title(point)}Plugin"
        _check_names(plugins, kind=kind, prefix=prefix)
        for each in plugins.enabled:
            if point not in _POINTS[each.name].split():
                raise errors.InvalidValueError(f'{prefix}: plugin "{each.name}" does not extend {kind} plugin')
    _check_names(multi_point, kind="PreFilterPlugin", prefix=prefix)
    for point, problem in (
        ("queueSort", f'only one queue sort plugin required for profile with scheduler name "{name}", but got 0'),
        ("bind", f'at least one bind plugin is needed for profile with scheduler name "{name}"'),
    ):
        plugin = _ALWAYS_ON[point]
        disabled = _names(sets[point].disabled, {plugin})
        is_default = plugin not in disabled | _names(multi_point.disabled, {plugin})
        is_enabled = plugin not in disabled and any(each.name == plugin for each in multi_point.enabled)
        if not is_default and not is_enabled and not any(each.name == plugin for each in sets[point].enabled):
            raise errors.InvalidValueError(f"{prefix}: {problem}")
    _check_weights([*sets["score"].enabled, *multi_point.enabled], prefix=prefix)


def _check_names(plugins: PluginSetForm, *, kind: str, prefix: str) -> None:
    enabled_names: set[str] = set()
    for each in plugins.enabled:
        if each.name not in _POINTS:
            raise errors.InvalidValueError(f'{prefix}: {kind} "{each.name}" does not exist')
        if each.name in enabled_names:
            raise errors.InvalidValueError(f'{prefix}: plugin "{each.name}" already registered as "{kind}"')
        enabled_names.add(each.name)
    for each in plugins.disabled:
        if each.name not in _POINTS and each.name != _ALL:
            _log.warning("disabled plugin %r does not exist", each.name)


def _check_weights(plugins: list[PluginForm], *, prefix: str) -> None:
    total = 0
    for each in plugins:
        if "score" not in _POINTS[each.name].split():
            continue
        weighted = (each.weight or 1) * _HIGHEST_SCORE
        total += weighted
        if weighted < 0 or total > _HIGHEST_TOTAL:
            raise errors.InvalidValueError(f"{prefix}: score plugins: total score of Score plugins could overflow")


def _title(point: str) -> str:
    return point[0].upper() + point[1:]


def choose(form: PluginsForm, settings: Settings, place: str) -> PluginSettings:
    """Return the plugins that a profile has. Raises errors.InvalidValueError for what is unknown or not supported."""
    entries = {
        each.plugin.name: each
        for each in profiles.default(settings, clock=clock.SystemClock(), rng=random.Random()).entries
    }
    sets = {
        field.encode_name: getattr(form, field.name)
        for field in structs.fields(PluginsForm)  # In the order of their declaration.
    }
    multi_point = sets.pop("multiPoint")
    order = _merge(list(entries), multi_point)
    points = {name: set(_points(entries[name])) if name in order else set() for name in entries}
    weights = {each.name: each.weight or 1 for each in multi_point.enabled if each.name in order}
    for point, plugins in sets.items():
        extension_point = _title(point)
        having = {name for name, entry in entries.items() if extension_point in _points(entry)}
        for name in _names(plugins.disabled, having) & having:
            points[name].discard(extension_point)
        for each in plugins.enabled:
            if each.name in having:
                points[each.name].add(extension_point)
                if each.name not in order:
                    order.append(each.name)
                if extension_point == _SCORE:
                    weights[each.name] = each.weight or 1
    for name, remaining in points.items():
        has = set(_points(entries[name]))
        if remaining == has or not remaining:
            continue
        if remaining != has - {_SCORE}:
            listed = [point for point in _points(entries[name]) if point in remaining]
            raise errors.InvalidValueError(
                f"{place}: {name} at {', '.join(listed)} only: not supported; it works at "
                f"{', '.join(_points(entries[name]))} together, or without Score"
            )
        weights[name] = 0
    return PluginSettings(order=tuple(name for name in order if points[name]), weights=weights)


def _points(entry: Entry) -> tuple[str, ...]:
    return tuple(point for point in entry.extension_points if point != "EnqueueExtensions")


def _names(plugins: list[PluginForm], everything: set[str]) -> set[str]:
    names = {each.name for each in plugins}
    return everything if _ALL in names else names


def _merge(default: list[str], plugins: PluginSetForm) -> list[str]:
    """Return the plugins in order: default ones first, then those that were disabled and enabled again."""
    disabled = _names(plugins.disabled, set(default))
    enabled_defaults = [name for name in default if name not in disabled]
    return enabled_defaults + [each.name for each in plugins.enabled if each.name in disabled and each.name in default]
