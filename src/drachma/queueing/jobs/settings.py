"""Settings of the job integration, and the objects around a job that its reconcile depends on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, TypeAlias

import msgspec

from drachma import errors
from drachma.queueing.configuration import frameworks
from drachma.queueing.configuration.gates import DEFAULT, Gates
from drachma.queueing.kinds import workload
from drachma.queueing.workloads import podsetinfo
from drachma.values import labels, quotation

Document: TypeAlias = Mapping[str, Any]
Owners: TypeAlias = Mapping[tuple[str, str, str], Document]
"""Objects of one namespace by apiVersion, kind and name."""

GROUP: Final = "kueue.x-k8s.io"
QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL: Final = "kueue.x-k8s.io/priority-class"
WORKLOAD_PRIORITY: Final = "WorkloadPriorityClass"


class Management(msgspec.Struct, frozen=True):
    """Selection of the objects that are queued."""

    frameworks: frozenset[str] = frozenset({frameworks.BATCH_JOB})
    """Kinds of jobs, as configurations name them."""
    only_pods_of_parents: bool = False
    """True if pods are queued only as pods of Deployments, StatefulSets and LeaderWorkerSets."""
    without_queue_name: bool = False
    """True if jobs without a queue name are suspended too."""


class JobSettings(msgspec.Struct, frozen=True):
    """Settings that the configuration has for jobs."""

    management: Management = Management()
    namespaces: labels.Selector = labels.Selector()
    """Namespaces whose jobs are queued."""
    waits_for_pods: bool = False
    """True if workloads get a PodsReady condition."""
    retention: timedelta | None = None
    """Time after which deactivated jobs are deleted; None keeps them."""
    label_keys: Sequence[str] = ()
    """Labels that a workload copies from its job."""
    annotation_keys: Sequence[str] = ()
    """Annotations that a workload copies from its job."""
    gates: Gates = DEFAULT


class ClassMissingError(errors.DrachmaError):
    """A priority class does not exist."""


class Priorities(msgspec.Struct, frozen=True):
    """Values of priority classes by name: Kueue's own classes, and those of pods."""

    workload_classes: Mapping[str, int] = {}
    pod_classes: Mapping[str, int] = {}
    defaults: Sequence[str] = ()
    """Global default classes of pods; the one with the lowest value applies."""

    def resolve(
        self, job_labels: Mapping[str, str], pod_sets: Sequence[Document], *, pod_class: str = ""
    ) -> tuple[dict[str, str] | None, int]:
        """Return a job's priority class reference and priority. Raises ClassMissingError.

        ``pod_class`` is a class of pods that counts before the classes of the pod sets.
        """
        name = job_labels.get(PRIORITY_LABEL, "")
        if name:
            if name not in self.workload_classes:
                raise ClassMissingError(f"workloadpriorityclasses.kueue.x-k8s.io {quotation.quote(name)} not found")
            return {"group": GROUP, "kind": WORKLOAD_PRIORITY, "name": name}, self.workload_classes[name]
        class_names = (each.get("template", {}).get("spec", {}).get("priorityClassName") for each in pod_sets)
        name = pod_class or next(filter(None, class_names), "")
        name = name or min(self.defaults, key=lambda each: self.pod_classes[each], default="")
        if not name:
            return None, 0
        if name not in self.pod_classes:
            raise ClassMissingError(f"priorityclasses.scheduling.k8s.io {quotation.quote(name)} not found")
        return {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": name}, self.pod_classes[name]


class Environment(msgspec.Struct, frozen=True):
    """Objects that the reconcile of a job reads."""

    namespace_labels: Mapping[str, str] | None
    """None if the job's namespace does not exist."""
    pod_sets: Callable[[workload.Workload], Sequence[Document]]
    """Returns the pod sets of a stored workload as whole documents."""
    workloads: Sequence[workload.Workload] = ()
    """Workloads of the job and of its owners."""
    owners: Owners = {}
    flavors: podsetinfo.Flavors = {}
    priorities: Priorities = Priorities()
