"""Which news make room in quotas: objects that go, and changes after which one counts for less."""

from datetime import datetime

from drachma.accounting.quota import pods, volumeclaims
from drachma.api import meta, persistentvolumeclaim, pod, service


def is_due(old: meta.Object, new: meta.Object, *, now: datetime) -> bool:
    """Whether an object may count for less than before, or in another scope."""
    match old, new:
        case pod.Pod(), pod.Pod():
            return _is_pod_due(old, new, now=now)
        case service.Service(), service.Service():
            return old.spec != new.spec
        case persistentvolumeclaim.PersistentVolumeClaim(), persistentvolumeclaim.PersistentVolumeClaim():
            return volumeclaims.is_moved(old, new)
    return False


def _is_pod_due(old: pod.Pod, new: pod.Pod, *, now: datetime) -> bool:
    if pods.is_terminating(old) != pods.is_terminating(new):
        return True
    if pods.is_charged(old, now=now) and not pods.is_charged(new, now=now):
        return True
    # A resize: what is asked for, allowed or had.
    return _resources(old) != _resources(new)


def _resources(of: pod.Pod) -> tuple[object, ...]:
    return (
        [each.resources for each in (*of.spec.containers, *of.spec.init_containers)],
        of.spec.resources,
        of.status.container_statuses,
        of.status.init_container_statuses,
    )
