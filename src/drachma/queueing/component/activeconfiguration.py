"""The active configuration, and the settings that each part of the component derives from it.

Parts read it each time they need it. If a new configuration is refused, the old one stays active.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from drachma.api import labelselectors, meta
from drachma.queueing.configuration import (
    configuration,
    configurationform,
    durations,
    frameworks,
    queueingpolicy,
)
from drachma.queueing.configuration.configuration import Configuration, RequeuingStrategy, Resources
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.configuration.queueingpolicy import AS_KUEUE, QueueingPolicy
from drachma.queueing.devices.mappings import DeviceMappings
from drachma.queueing.jobs.settings import JobSettings, Management
from drachma.queueing.lifecycle import workloadstep
from drachma.queueing.workloads.requests import Counting
from drachma.queueing.workloads.settings import Settings
from drachma.queueing.workloads.workloadstate import ReadyTimeouts
from drachma.values import labels

Listener = Callable[[], None]


_ALL_AT_ONCE: Final = "kueue.x-k8s.io/multikueue-dispatcher-all-at-once"
"""Dispatcher that nominates all clusters of a workload."""


class ActiveConfiguration:
    """Holds a validated configuration, and calls listeners when another one becomes active."""

    def __init__(self, config: Configuration | None = None) -> None:
        self._listeners: Final[list[Listener]] = []
        self.version = 0
        """Number of configurations that have been active."""
        self._set(config or configuration.default(Configuration()), AS_KUEUE)

    def _set(self, config: Configuration, policy: QueueingPolicy) -> None:
        self.version += 1
        self.configuration: Configuration = config
        self.policy: QueueingPolicy = policy
        self.gates: Gates = config.gates
        self.settings: Settings = Settings.of(config, policy)
        resources = config.resources or Resources()
        self.mappings: DeviceMappings = DeviceMappings.of(resources.device_class_mappings)
        self.counting: Counting = Counting.of(
            excluded_prefixes=resources.exclude_resource_prefixes,
            transformations=resources.transformations,
            gates=self.gates,
        )
        local = config.metrics.local_queue_metrics or configuration.LocalQueueMetrics(enable=True)
        selector = local.local_queue_selector or meta.LabelSelector()
        is_measured = local.enable and self.gates.on(Gate.LOCAL_QUEUE_METRICS)
        self._measured: labels.Selector = labelselectors.of(selector if is_measured else None)
        self.patience: workloadstep.Patience | None = _patience(config, self.gates)
        retention = config.object_retention_policies.workloads if config.object_retention_policies is not None else None
        self.retention: timedelta | None = _span(retention.after_finished) if retention is not None else None
        multi_kueue = config.multi_kueue or configuration.MultiKueue()
        timeout = _span(multi_kueue.worker_lost_timeout)
        self.worker_lost_timeout: timedelta = timedelta(minutes=15) if timeout is None else timeout
        self.nominates_all_clusters: bool = (multi_kueue.dispatcher_name or _ALL_AT_ONCE) == _ALL_AT_ONCE
        integrations = config.integrations or configuration.Integrations()
        self.jobs: JobSettings = JobSettings(
            management=Management(
                frameworks=_add_pods(frozenset(integrations.frameworks or ())),
                only_pods_of_parents=frameworks.POD not in (integrations.frameworks or ()),
                without_queue_name=bool(config.manage_jobs_without_queue_name),
            ),
            namespaces=labelselectors.of(config.managed_jobs_namespace_selector or meta.LabelSelector()),
            waits_for_pods=self.patience is not None,
            retention=_span(retention.after_deactivated_by_kueue) if retention is not None else None,
            label_keys=integrations.label_keys_to_copy,
            gates=self.gates,
        )

    def offer(self, *documents: Mapping[str, Any]) -> bool:
        """Make a configuration active, and return True if that changed anything.

        The documents are one Configuration of Kueue and at most one QueueingPolicy.

        Raises:
            configurationform.RefusedConfigurationError: the configuration is invalid; the old one stays.
        """
        kueues = [each for each in documents if not queueingpolicy.is_policy(each)]
        policies = [each for each in documents if queueingpolicy.is_policy(each)]
        if len(kueues) != 1 or len(policies) > 1:
            raise configurationform.RefusedConfigurationError(
                f"expected one Configuration and at most one {queueingpolicy.KIND}: "
                f"got {len(kueues)} and {len(policies)}"
            )
        policy = _policy(policies[0]) if policies else AS_KUEUE
        offered = configurationform.read(kueues[0], policy)
        if (offered, policy) == (self.configuration, self.policy):
            return False
        self._set(offered, policy)
        for listener in self._listeners:
            listener()
        return True

    @property
    def ignored_frameworks(self) -> tuple[str, ...]:
        """Frameworks that the configuration lists and that have no implementation here."""
        return tuple(sorted(self.jobs.management.frameworks - set(frameworks.CARRIED_OUT)))

    def measures_local_queue(self, queue_labels: Mapping[str, str]) -> bool:
        """Return True if a local queue with these labels has metrics of its own."""
        return self._measured.matches(queue_labels)

    def subscribe(self, listener: Listener) -> None:
        """Call a function whenever another configuration becomes active."""
        self._listeners.append(listener)


def _add_pods(names: frozenset[str]) -> frozenset[str]:
    """Return the names of kinds with that of pods, if one of the kinds is queued through its pods."""
    return names | {frameworks.POD} if names & set(frameworks.POD_PARENTS) else names


def _policy(document: Mapping[str, Any]) -> QueueingPolicy:
    policy = queueingpolicy.read(document)
    if isinstance(policy, QueueingPolicy):
        return policy
    raise configurationform.RefusedConfigurationError(
        "; ".join(f"{queueingpolicy.KIND}.{problem}" for problem in policy)
    )


def _patience(configuration: Configuration, gates: Gates) -> workloadstep.Patience | None:
    ready = configuration.wait_for_pods_ready
    if ready is None or gates.on(Gate.DISABLE_WAIT_FOR_PODS_READY):
        return None
    strategy = ready.requeuing_strategy or RequeuingStrategy()
    start = _span(ready.timeout)
    assert start is not None, "a configuration with its defaults has a timeout"
    return workloadstep.Patience(
        timeouts=ReadyTimeouts(start=start, recovery=_span(ready.recovery_timeout)),
        limit=strategy.backoff_limit_count,
        base_seconds=strategy.backoff_base_seconds or 0,
        max_seconds=strategy.backoff_max_seconds or 0,
    )


def _span(text: str | None) -> timedelta | None:
    return None if text is None else timedelta(microseconds=durations.nanoseconds(text) / 1000)
