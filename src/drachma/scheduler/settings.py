"""Settings of a scheduler, with upstream's defaults."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import structs

from drachma import allocator
from drachma.api import gates as features
from drachma.claims import podstate
from drachma.scheduler import queue
from drachma.scheduler.framework import resourcescoring


class PluginSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Changes to the default profile."""

    order: tuple[str, ...] | None = None
    """Names of the plugins in their order, or None for all of the default profile."""
    weights: Mapping[str, int] = {}
    """Weights of scores by plugin, if they are not the default ones; 0 for a plugin that does not score."""
    strategy: resourcescoring.Strategy | None = None
    """Preference of NodeResourcesFit, or None for the preference of the policy."""
    balanced_resources: tuple[resourcescoring.ScoredResource, ...] = resourcescoring.CPU_AND_MEMORY
    """Resources of NodeResourcesBalancedAllocation."""


class ProfileSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that each profile of a scheduler has of its own."""

    name: str
    """``schedulerName`` of the pods that the profile is for."""
    filter_seconds: float = 10.0
    binding_seconds: float = 600.0
    volume_binding_seconds: float | None = None
    plugins: PluginSettings = PluginSettings()


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a scheduler."""

    name: str = podstate.DEFAULT_SCHEDULER
    """``schedulerName`` of the pods that are scheduled."""
    gates: features.Gates = features.ALL
    filter_seconds: float = 10.0
    """Time limit for an allocation on one node."""
    binding_seconds: float = 600.0
    """Time limit for devices to become ready."""
    binders: int = 64
    """Number of pods written at the same time: enough to keep a server busy, few enough that the first need not wait.
    """
    pauses: queue.Pauses = queue.Pauses()
    has_volume_controllers: bool = True
    """True if controllers bind volumes to claims; otherwise pods do not wait for that."""
    policy: allocator.Preference = allocator.Policy.FIRST_FIT
    """Order in which devices are tried, and preference of nodes by their devices."""
    gang_steps: int = 1000
    """Number of decisions about pods in the search for nodes for a gang, after the first turn."""
    plugins: PluginSettings = PluginSettings()
    volume_binding_seconds: float | None = None
    """Time limit for volumes to be bound, or None for the limit of devices."""
    has_peers: bool = False
    """True if other schedulers work at the same time. Then each announces its decisions and checks those of others."""

    has_neighbours: bool = False
    """True if schedulers that know nothing of this one allocate from the same devices. Then each allocation is checked
    after it is written, and the later of two that collide is undone."""

    more_profiles: tuple[ProfileSettings, ...] = ()
    """Profiles next to the one that the fields above describe, each for the pods of another ``schedulerName``."""

    @property
    def names(self) -> tuple[str, ...]:
        """``schedulerName`` of each profile."""
        return (self.name, *(each.name for each in self.more_profiles))

    def by_profile(self) -> dict[str, Settings]:
        """Return the settings of a scheduler with one profile, for each profile."""
        alone = structs.replace(self, more_profiles=())
        return {
            self.name: alone,
            **{
                each.name: structs.replace(
                    alone,
                    name=each.name,
                    filter_seconds=each.filter_seconds,
                    binding_seconds=each.binding_seconds,
                    volume_binding_seconds=each.volume_binding_seconds,
                    plugins=each.plugins,
                )
                for each in self.more_profiles
            },
        }

    @property
    def has_gangs(self) -> bool:
        """True if pods of a gang get nodes together or not at all."""
        return self.gates.on(features.Gate.GENERIC_WORKLOAD)
