"""Workloads: groups of pods by the selectors of services and of their controllers.

Only pods without topology spread constraints are looked up here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drachma import errors
from drachma.api import labelselectors, meta, pod, replicaset, replicationcontroller, service, statefulset
from drachma.values import forkmap, labels

_Requirements = tuple[labels.Requirement, ...]
_Key = tuple[str, str, str]
"""Kind, namespace and name."""

Owner = replicaset.ReplicaSet | replicationcontroller.ReplicationController | statefulset.StatefulSet

_OWNERS: Final = frozenset({("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"), ("v1", "ReplicationController")})
"""API versions and kinds of controllers of pods, as references to owners name them."""


class Workloads:
    """Selectors of services, replica sets, stateful sets and replication controllers."""

    def __init__(self, parent: Workloads | None = None) -> None:
        """With a ``parent`` this is a fork of it."""
        if parent is None:
            self._services = forkmap.ForkMap[str, Mapping[str, labels.Selector]]()
            self._owners = forkmap.ForkMap[_Key, _Requirements]()
        else:
            self._services = parent._services.fork()
            self._owners = parent._owners.fork()

    def fork(self) -> Workloads:
        """Return a copy that can be changed separately."""
        return Workloads(self)

    def put_service(self, new: service.Service) -> None:
        """Add or update a service. A service without a selector selects no pods."""
        self._change_service(new.metadata, new.spec.selector)

    def remove_service(self, deleted: service.Service) -> None:
        """Remove a service."""
        self._change_service(deleted.metadata, {})

    def _change_service(self, metadata: meta.ObjectMeta, selector: Mapping[str, str]) -> None:
        services = dict(self._services.get(metadata.namespace, {}))
        services.pop(metadata.name, None)
        if selector:
            services[metadata.name] = labels.Selector.from_labels(selector)
        if services or metadata.namespace in self._services:
            self._services[metadata.namespace] = services

    def put_owner(self, new: Owner) -> None:
        """Add or update a controller of pods. A malformed selector selects no pods."""
        selector = new.spec.selector
        try:
            if isinstance(selector, Mapping):
                requirements = labels.Selector.from_labels(selector).requirements
            else:
                requirements = labelselectors.of(selector).requirements
        except errors.InvalidValueError:
            requirements = ()
        self._owners[_key(new)] = requirements

    def remove_owner(self, deleted: Owner) -> None:
        """Remove a controller of pods."""
        self._owners.pop(_key(deleted), None)

    def requirements(self, member: pod.Pod) -> _Requirements:
        """Return the label requirements of the group that a pod belongs to; none if there is no group."""
        metadata = member.metadata
        services = self._services.get(metadata.namespace)
        requirements: _Requirements = ()
        if services:
            common: dict[str, labels.Requirement] = {}
            for selector in services.values():
                if selector.matches(metadata.labels):
                    common |= {each.key: each for each in selector.requirements}
            requirements = tuple(common.values())
        for owner in metadata.owner_references:
            if owner.controller:
                if (owner.api_version, owner.kind) in _OWNERS:
                    requirements += self._owners.get((owner.kind, metadata.namespace, owner.name), ())
                break
        return requirements


def _key(owner: Owner) -> _Key:
    return type(owner).__name__, owner.metadata.namespace, owner.metadata.name
