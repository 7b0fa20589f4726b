"""Persistent volume claims: counted, with their requested storage, in total and by storage class."""

from collections.abc import Iterable
from typing import Final

from drachma.accounting.quota import evaluator
from drachma.api import persistentvolumeclaim
from drachma.api.persistentvolumeclaim import PersistentVolumeClaim
from drachma.api.resourcequota import ScopedResourceSelectorRequirement as Requirement
from drachma.values import quantity

_COUNT: Final = "count/persistentvolumeclaims"
_CLAIMS: Final = "persistentvolumeclaims"
_STORAGE: Final = "requests.storage"
_CLASS_SUFFIX: Final = ".storageclass.storage.k8s.io/"
_PER_CLASS: Final = tuple(_CLASS_SUFFIX + name for name in (_CLAIMS, _STORAGE))
_NAMES: Final = frozenset({_COUNT, _CLAIMS, _STORAGE})
_GIGA: Final = 10**9


class VolumeClaims:
    """Evaluator of persistent volume claims."""

    model: Final = PersistentVolumeClaim
    subresources: Final = frozenset({"", "status"})
    owed: Final = frozenset({"status"})

    def concerns(self, change: evaluator.Change[PersistentVolumeClaim]) -> bool:
        return not change.subresource or (change.old is not None and is_moved(change.old, change.new))

    def counted(self, names: Iterable[str], _facts: evaluator.Facts) -> frozenset[str]:
        return frozenset(name for name in names if name in _NAMES or name.endswith(_PER_CLASS))

    def is_in_scope(self, subject: PersistentVolumeClaim, requirement: Requirement) -> bool:
        if requirement.scope_name != evaluator.VOLUME_ATTRIBUTES_CLASS:
            return False
        return evaluator.is_met(requirement, _attributes_classes(subject))

    def omission(self, _subject: PersistentVolumeClaim, _required: frozenset[str]) -> str:
        return ""

    def usage(self, subject: PersistentVolumeClaim, _facts: evaluator.Facts) -> evaluator.Amounts:
        usage = {_CLAIMS: evaluator.ONE, _COUNT: evaluator.ONE}
        storage = _storage(subject)
        if storage is not None:
            usage[_STORAGE] = storage
        storage_class = persistentvolumeclaim.class_of(subject)
        if storage_class:
            usage[f"{storage_class}{_CLASS_SUFFIX}{_CLAIMS}"] = evaluator.ONE
            if storage is not None:
                usage[f"{storage_class}{_CLASS_SUFFIX}{_STORAGE}"] = storage
        return usage


def is_moved(old: PersistentVolumeClaim, new: PersistentVolumeClaim) -> bool:
    """Return True if a status changes the storage of a claim or its classes."""
    before, after = old.status.allocated_resources, new.status.allocated_resources
    return before.get("storage") != after.get("storage") or _attributes_classes(old) != _attributes_classes(new)


def _storage(subject: PersistentVolumeClaim) -> quantity.Quantity | None:
    """Return the storage in whole bytes: requested, or allocated by an expansion that is not taken back yet."""
    requested = subject.spec.resources.requests.get("storage")
    if requested is None:
        return None
    allocated = subject.status.allocated_resources.get("storage")
    return _whole(requested if allocated is None or allocated <= requested else allocated)


def _whole(amount: quantity.Quantity) -> quantity.Quantity:
    if not amount.nanos % _GIGA:
        return amount
    return quantity.Quantity.from_int(-(-amount.nanos // _GIGA), format=amount.format)


def _attributes_classes(subject: PersistentVolumeClaim) -> frozenset[str]:
    status = subject.status
    target = status.modify_volume_status.target_volume_attributes_class_name if status.modify_volume_status else ""
    names = (subject.spec.volume_attributes_class_name, status.current_volume_attributes_class_name, target)
    return frozenset(name for name in names if name)
