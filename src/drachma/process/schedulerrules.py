"""Rules about a KubeSchedulerConfiguration, with upstream's messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import structs

from drachma import errors
from drachma.cel.runtime import instants
from drachma.process import schedulerarguments
from drachma.process.schedulerforms import (
    VERSION,
    ConfigurationForm,
    LeaderElectionForm,
    PluginSetForm,
    PluginsForm,
    ProfileForm,
)
from drachma.validation import fielderror, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path

_REMOVED: Final = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
"""Plugins of earlier versions of the configuration."""


def check(form: ConfigurationForm) -> Errors:
    """Yield all errors of a configuration, in upstream's order. An invalid duration raises errors.InvalidValueError."""
    if form.client_connection.burst < 0:
        at = Path("clientConnection").child("burst")
        yield fielderror.invalid(at, form.client_connection.burst, "must be non-negative")
    yield from _check_election(form.leader_election, Path("leaderElection"))
    if form.parallelism <= 0:
        rule = "should be an integer value greater than zero"
        yield fielderror.invalid(Path("parallelism"), form.parallelism, rule)
    names: set[str | None] = set()
    for number, profile in enumerate(form.profiles):
        at = Path("profiles").item(number)
        yield from _check_profile(profile, at)
        if profile.scheduler_name in names:
            yield fielderror.duplicate(at.child("schedulerName"), profile.scheduler_name)
        names.add(profile.scheduler_name)
    yield from _check_queue_sort(form.profiles)
    yield from _check_percentage(form.percentage_of_nodes_to_score, Path("percentageOfNodesToScore"))
    initial, most = form.pod_initial_backoff_seconds, form.pod_max_backoff_seconds
    if initial <= 0:
        yield fielderror.invalid(Path("podInitialBackoffSeconds"), _number(initial), "must be greater than 0")
    if most < initial:
        rule = "must be greater than or equal to PodInitialBackoffSeconds"
        yield fielderror.invalid(Path("podMaxBackoffSeconds"), _number(most), rule)


def _number(value: float) -> float:
    return int(value) if value == int(value) else value


def _check_election(election: LeaderElectionForm, at: Path) -> Errors:
    if not election.leader_elect:
        return
    lengths = {
        field: seconds(at.child(field), text)
        for field, text in (
            ("leaseDuration", election.lease_duration),
            ("renewDeadline", election.renew_deadline),
            ("retryPeriod", election.retry_period),
        )
    }
    texts = (election.lease_duration, election.renew_deadline, election.retry_period)
    for (field, length), text in zip(lengths.items(), texts, strict=True):
        if length <= 0:
            yield fielderror.invalid(at.child(field), text, "must be greater than zero")
    if lengths["leaseDuration"] <= lengths["renewDeadline"]:
        # As upstream, the field of one duration with the value of the other.
        yield fielderror.invalid(
            at.child("leaseDuration"), election.renew_deadline, "must be greater than `RenewDeadline`"
        )
    elif lengths["renewDeadline"] <= lengths["retryPeriod"]:
        yield fielderror.invalid(at.child("retryPeriod"), election.retry_period, "must be less than `RenewDeadline`")
    if election.resource_lock != "leases":
        rule = 'resourceLock value must be "leases"'
        yield fielderror.invalid(at.child("resourceLock"), election.resource_lock, rule)


def seconds(at: Path, text: str) -> float:
    """Return the seconds of a duration such as ``15s``. Raises errors.InvalidValueError."""
    duration = instants.parse_duration(text)
    if duration is None:
        raise errors.InvalidValueError(f'{at}: time: invalid duration "{text}"')
    return duration.nanos / 10**9


def _check_profile(profile: ProfileForm, at: Path) -> Errors:
    if not profile.scheduler_name:
        yield fielderror.required(at.child("schedulerName"))
    yield from _check_percentage(profile.percentage_of_nodes_to_score, at.child("percentageOfNodesToScore"))
    for field in structs.fields(PluginsForm):
        plugins: PluginSetForm = getattr(profile.plugins, field.name)
        for number, each in enumerate(plugins.enabled):
            if field.encode_name != "multiPoint" and each.name in _REMOVED:
                place = at.child("plugins", field.encode_name, "enabled").item(number)
                yield fielderror.invalid(place, each.name, _REMOVED_RULE)
    seen: set[str] = set()
    for number, configured in enumerate(profile.plugin_config):
        place = at.child("pluginConfig").item(number)
        if configured.name in seen:
            yield fielderror.duplicate(place, configured.name)
        seen.add(configured.name)
        if configured.name in _REMOVED:
            yield fielderror.invalid(place, configured.name, _REMOVED_RULE)
        else:
            yield from schedulerarguments.check(configured.name, configured.args, place.child("args"))


_REMOVED_RULE: Final = f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{VERSION}")'


def _check_percentage(percentage: int | None, at: Path) -> Errors:
    if percentage is not None and not 0 <= percentage <= 100:
        yield fielderror.invalid(at, percentage, "not in valid range [0-100]")


def _check_queue_sort(profiles: Sequence[ProfileForm]) -> Errors:
    """Check that all profiles sort the queue, which they share, in the same way."""
    if not profiles:
        return
    first = profiles[0].plugins.queue_sort
    if len(first.enabled) > 1:
        at = Path("profiles").item(0).child("plugins", "queueSort", "Enabled")
        yield fielderror.invalid(at, len(first.enabled), "only one queue sort plugin can be enabled")
    for number, profile in enumerate(profiles):
        if profile.plugins.queue_sort != first:
            at = Path("profiles").item(number).child("plugins", "queueSort")
            value = rendering.Rendered(_show(profile.plugins.queue_sort))
            yield fielderror.invalid(at, value, "must be the same for all profiles")


def _show(plugins: PluginSetForm) -> str:
    """Return plugins as upstream prints them in a message."""
    lists = (
        ",".join(f'{{"Name":"{each.name}","Weight":{each.weight}}}' for each in listed)
        for listed in (plugins.enabled, plugins.disabled)
    )
    enabled, disabled = (f"[{text}]" if text else "null" for text in lists)
    return f'{{"Enabled":{enabled},"Disabled":{disabled}}}'
