"""KubeSchedulerConfiguration of ``kubescheduler.config.k8s.io/v1``: upstream's file, as settings of a scheduler.

A file may have several profiles. Each is for the pods of one ``schedulerName``, with plugins, weights and arguments of
its own; all of them share one queue and one view of the cluster. Errors have upstream's messages.

Fields that only tune upstream's implementation have no effect here. A value that would change decisions in a way that
drachma does not know is refused, with its field.
"""

from __future__ import annotations

import logging
import pathlib
from collections.abc import Iterable

import msgspec
import yaml
from msgspec import structs

from drachma import errors
from drachma.claims import podstate
from drachma.process import schedulerarguments, schedulerplugins, schedulerrules
from drachma.process.schedulerforms import KIND, VERSION, ConfigurationForm, LeaderElectionForm, ProfileForm
from drachma.runtime import lease
from drachma.scheduler import Settings
from drachma.scheduler.settings import ProfileSettings
from drachma.validation import fielderror
from drachma.validation.path import Path

_log = logging.getLogger(__name__)


class SchedulerConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a scheduler and of its process."""

    settings: Settings
    lease_name: lease.LeaseName | None
    """Lease of the leader, or None without leader election."""
    timing: lease.Timing
    kubeconfig: pathlib.Path | None


def read(path: pathlib.Path, settings: Settings) -> SchedulerConfiguration:
    """Return the configuration in a file; ``settings`` has the values that such a file cannot have.

    Raises:
        errors.InvalidValueError: the file cannot be read, or has a value that is wrong or not supported.
    """
    try:
        return convert(yaml.safe_load(path.read_text("utf-8")), settings)
    except OSError as error:
        raise errors.InvalidValueError(f"configuration {path}: {error.strerror}") from None
    except (UnicodeError, yaml.YAMLError) as error:
        raise errors.InvalidValueError(f"configuration {path}: not YAML: {error}") from None
    except errors.InvalidValueError as error:
        raise errors.InvalidValueError(f"configuration {path}: {error}") from None


def convert(document: object, settings: Settings) -> SchedulerConfiguration:
    """Return the configuration of a document. Raises errors.InvalidValueError with the field."""
    form = _with_default_profile(_decode(document))
    _refuse(schedulerrules.check(form))
    _check_supported(form)
    pauses = structs.replace(
        settings.pauses, initial=form.pod_initial_backoff_seconds, maximum=form.pod_max_backoff_seconds
    )
    common_settings = structs.replace(settings, pauses=pauses)
    first, *more = (_profile(each, common_settings, f"profiles[{number}]") for number, each in enumerate(form.profiles))
    configured = structs.replace(
        first,
        more_profiles=tuple(
            ProfileSettings(
                name=each.name,
                filter_seconds=each.filter_seconds,
                binding_seconds=each.binding_seconds,
                volume_binding_seconds=each.volume_binding_seconds,
                plugins=each.plugins,
            )
            for each in more
        ),
    )
    election = form.leader_election
    connection = form.client_connection.kubeconfig
    return SchedulerConfiguration(
        settings=configured,
        lease_name=_lease_name(election) if election.leader_elect else None,
        timing=_timing(election),
        kubeconfig=pathlib.Path(connection) if connection else None,
    )


def _decode(document: object) -> ConfigurationForm:
    if not isinstance(document, dict):
        raise errors.InvalidValueError(f"expected a {KIND} of {VERSION}")
    kind, version = document.get("kind"), document.get("apiVersion")
    if (kind, version) != (KIND, VERSION):
        raise errors.InvalidValueError(
            f'no kind "{kind}" is registered for version "{version}"; expected a {KIND} of {VERSION}'
        )
    try:
        return msgspec.convert(document, ConfigurationForm)
    except msgspec.ValidationError as error:
        raise errors.InvalidValueError(f"strict decoding error: {error}") from None


def _with_default_profile(form: ConfigurationForm) -> ConfigurationForm:
    """Return a configuration with at least one profile. A single profile need not have a name."""
    profiles = form.profiles or (ProfileForm(),)
    if len(profiles) == 1 and profiles[0].scheduler_name is None:
        profiles = (structs.replace(profiles[0], scheduler_name=podstate.DEFAULT_SCHEDULER),)
    return structs.replace(form, profiles=profiles)


def _refuse(problems: Iterable[fielderror.FieldError]) -> None:
    """Raise errors.InvalidValueError with all problems, if there are any."""
    texts = [str(each) for each in problems]
    if texts:
        raise errors.InvalidValueError(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")


def _profile(form: ProfileForm, settings: Settings, place: str) -> Settings:
    """Return the settings of a scheduler with only this profile. Raises errors.InvalidValueError."""
    assert form.scheduler_name, "was checked"
    prefix = f"initializing profiles: creating profile for scheduler name {form.scheduler_name}"
    configured = structs.replace(settings, name=form.scheduler_name)
    for number, each in enumerate(form.plugin_config):
        at = f"{place}.pluginConfig[{number}]"
        schedulerarguments.check_names(each.name, each.args, at)
        try:
            _refuse(schedulerarguments.check_plugin(each.name, each.args))
        except errors.InvalidValueError as error:
            raise errors.InvalidValueError(f'{prefix}: initializing plugin "{each.name}": {error}') from None
        configured = schedulerarguments.apply(configured, each.name, each.args, at)
    schedulerplugins.check(form.plugins, name=form.scheduler_name, prefix=prefix)
    plugins = schedulerplugins.choose(form.plugins, configured, f"{place}.plugins")
    chosen = structs.replace(configured.plugins, order=plugins.order, weights=plugins.weights)
    return structs.replace(configured, plugins=chosen)


def _check_supported(form: ConfigurationForm) -> None:
    """Refuse what would change decisions in a way that drachma does not know. Raises errors.InvalidValueError."""
    percentages = [
        (Path("percentageOfNodesToScore"), form.percentage_of_nodes_to_score),
        *(
            (Path("profiles").item(number).child("percentageOfNodesToScore"), each.percentage_of_nodes_to_score)
            for number, each in enumerate(form.profiles)
        ),
    ]
    for at, percentage in percentages:
        if percentage not in (None, 0, 100):
            rule = "not supported by drachma, which scores all nodes; expected 0 or 100"
            _refuse([fielderror.invalid(at, percentage, rule)])
    if form.extenders:
        addresses = ", ".join(str(each.get("urlPrefix", "")) for each in form.extenders)
        _refuse([fielderror.invalid(Path("extenders"), addresses, "not supported by drachma")])
    if form.delay_cache_until_active:
        rule = "not supported by drachma, whose replicas always fill their caches"
        _refuse([fielderror.invalid(Path("delayCacheUntilActive"), True, rule)])  # noqa: FBT003 - the value of a field
    if form.client_connection.qps or form.client_connection.burst:
        _log.info("clientConnection.qps and clientConnection.burst have no effect")


def _lease_name(election: LeaderElectionForm) -> lease.LeaseName:
    """Return the lease of the leader. Empty names are upstream's defaults."""
    default = LeaderElectionForm()
    return lease.LeaseName(
        election.resource_namespace or default.resource_namespace, election.resource_name or default.resource_name
    )


def _timing(election: LeaderElectionForm) -> lease.Timing:
    at = Path("leaderElection")
    return lease.Timing(
        valid=schedulerrules.seconds(at.child("leaseDuration"), election.lease_duration),
        renew=schedulerrules.seconds(at.child("renewDeadline"), election.renew_deadline),
        retry=schedulerrules.seconds(at.child("retryPeriod"), election.retry_period),
    )
