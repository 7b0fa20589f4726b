"""Workloads: which pods belong together, by the selectors of services and of what made them.

Only pods that say nothing about how they want to be spread are looked up here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drachma import errors
from drachma.api import labelselectors, meta, pod, replicaset, service, statefulset
from drachma.values import forkmap, labels

_Requirements = tuple[labels.Requirement, ...]
_Key = tuple[str, str, str]
"""Kind, namespace and name."""

Owner = replicaset.ReplicaSet | statefulset.StatefulSet

_OWNERS: Final = frozenset({"ReplicaSet", "StatefulSet"})
_OWNER_GROUP: Final = "apps"


class Workloads:
    """Selectors of services, replica sets and stateful sets."""

    def __init__(self, parent: Workloads | None = None) -> None:
        """``parent`` is what this is a fork of."""
        if parent is None:
            self._services = forkmap.ForkMap[str, Mapping[str, labels.Selector]]()
            self._owners = forkmap.ForkMap[_Key, _Requirements]()
        else:
            self._services = parent._services.fork()
            self._owners = parent._owners.fork()

    def fork(self) -> Workloads:
        """The same, to be changed apart."""
        return Workloads(self)

    def put_service(self, new: service.Service) -> None:
        """Take in a service; one without a selector chooses nothing."""
        self._change_service(new.metadata, new.spec.selector)

    def remove_service(self, gone: service.Service) -> None:
        """Forget a service."""
        self._change_service(gone.metadata, {})

    def _change_service(self, metadata: meta.ObjectMeta, selector: Mapping[str, str]) -> None:
        services = dict(self._services.get(metadata.namespace, {}))
        services.pop(metadata.name, None)
        if selector:
            services[metadata.name] = labels.Selector.from_labels(selector)
        if services or metadata.namespace in self._services:
            self._services[metadata.namespace] = services

    def put_owner(self, new: Owner) -> None:
        """Take in what makes pods; a selector that is not well-formed chooses nothing."""
        try:
            requirements = labelselectors.of(new.spec.selector).requirements
        except errors.InvalidValueError:
            requirements = ()
        self._owners[_key(new)] = requirements

    def remove_owner(self, gone: Owner) -> None:
        """Forget what made pods."""
        self._owners.pop(_key(gone), None)

    def requirements(self, of: pod.Pod) -> _Requirements:
        """What is common to the pods that a pod belongs together with; nothing where there is nobody to tell."""
        metadata = of.metadata
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
                group = owner.api_version.partition("/")[0]
                if owner.kind in _OWNERS and group == _OWNER_GROUP:
                    requirements += self._owners.get((owner.kind, metadata.namespace, owner.name), ())
                break
        return requirements


def _key(of: Owner) -> _Key:
    return type(of).__name__, of.metadata.namespace, of.metadata.name
