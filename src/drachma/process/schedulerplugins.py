"""Plugins of a profile in a KubeSchedulerConfiguration: enabled, disabled and weighted, by extension point."""

from __future__ import annotations

import logging
import random
from collections.abc import Container
from typing import Final

import msgspec
from msgspec import structs

from drachma import errors
from drachma.runtime import clock
from drachma.scheduler import Settings, profiles
from drachma.scheduler.framework.profile import Entry
from drachma.scheduler.settings import PluginSettings

_ALL: Final = "*"
_SCORE: Final = "Score"
_ALWAYS_ON: Final = frozenset({"PrioritySort", "DefaultBinder"})
"""Plugins of upstream that are part of the scheduler here."""
_MOST_WEIGHT: Final = 2**31 // 100
"""Scores are at most 100 and, as upstream, their weighted sum is a number of 32 bits."""

_log = logging.getLogger(__name__)


class PluginForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    weight: int = 0


class PluginSetForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Plugins of one extension point, in addition to or instead of the default ones."""

    enabled: list[PluginForm] = []
    disabled: list[PluginForm] = []


class PluginsForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    multi_point: PluginSetForm = PluginSetForm()
    pre_enqueue: PluginSetForm = PluginSetForm()
    queue_sort: PluginSetForm = PluginSetForm()
    pre_filter: PluginSetForm = PluginSetForm()
    filter: PluginSetForm = PluginSetForm()
    post_filter: PluginSetForm = PluginSetForm()
    pre_score: PluginSetForm = PluginSetForm()
    score: PluginSetForm = PluginSetForm()
    reserve: PluginSetForm = PluginSetForm()
    permit: PluginSetForm = PluginSetForm()
    pre_bind: PluginSetForm = PluginSetForm()
    bind: PluginSetForm = PluginSetForm()
    post_bind: PluginSetForm = PluginSetForm()


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
    for point, plugins in sets.items():
        _check_names(point, plugins, entries.keys(), place)
    multi_point = sets.pop("multiPoint")
    order = _merge(list(entries), multi_point)
    points = {name: set(_points(entries[name])) if name in order else set() for name in entries}
    weights = {each.name: each.weight or 1 for each in multi_point.enabled if each.name in order}
    for point, plugins in sets.items():
        extension_point = point[0].upper() + point[1:]
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


def _check_names(point: str, plugins: PluginSetForm, known: Container[str], place: str) -> None:
    for number, each in enumerate(plugins.enabled):
        field = f"{place}.{point}.enabled[{number}]"
        if each.name not in known and each.name not in _ALWAYS_ON:
            raise errors.InvalidValueError(f"{field}.name: {each.name!r}: there is no such plugin")
        if not 0 <= each.weight <= _MOST_WEIGHT:
            raise errors.InvalidValueError(f"{field}.weight: {each.weight}: expected 0 to {_MOST_WEIGHT}")
    for number, each in enumerate(plugins.disabled):
        field = f"{place}.{point}.disabled[{number}].name"
        if each.name in _ALWAYS_ON:
            raise errors.InvalidValueError(f"{field}: {each.name!r}: not supported; the scheduler always has it")
        if each.name not in known and each.name != _ALL:
            _log.warning("%s: %r: there is no such plugin", field, each.name)
