"""Charges: the usage that a write adds to the status of a quota.

A charge is committed together with its write, on the quota as it is by then. If concurrent writes have used up the
quota, the write is refused.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from drachma.accounting.quota import evaluator
from drachma.api import codec, resourcequota
from drachma.server.ownership import fieldset, managedfields, managers
from drachma.store import record
from drachma.values import quantity

_parse = quantity.Quantity.parse

_WRITER: Final = managers.Manager("kube-apiserver", managers.UPDATE, "v1", "status")
"""Field manager of charges, as in upstream."""


class QuotaCharge(msgspec.Struct, frozen=True, kw_only=True):
    """A charge to one quota. It was computed for ``spec`` and ``hard``, and is void if they have changed.

    A charge that ``is_owed`` is made even if it exceeds the quota.
    """

    key: record.Key
    uid: str
    amounts: evaluator.Amounts
    spec: Mapping[str, Any]
    hard: Mapping[str, Any]
    now: datetime
    is_owed: bool = False

    def holds(self, quota: record.Record) -> bool:
        """Return True if the charge can be made on a version of the quota."""
        document = quota.value
        status = document.get("status") or {}
        if quota.uid != self.uid or status.get("hard") != self.hard or document.get("spec") != self.spec:
            return False
        if self.is_owed:
            return True
        used = self._compute_usage(status)
        return all(used[name] <= _parse(self.hard[name]) for name in self.amounts)

    def apply(self, quota: Mapping[str, Any]) -> dict[str, Any]:
        """Return the quota after the charge."""
        used = {**(quota["status"].get("used") or {})}
        used.update((name, str(amount)) for name, amount in self._compute_usage(quota["status"]).items())
        status = {**quota["status"], "used": dict(sorted(used.items()))}
        fields: fieldset.FieldSet = {"f:status": {"f:used": {fieldset.field(name): {} for name in self.amounts}}}
        metadata = dict(quota["metadata"])
        if metadata.get("managedFields"):
            metadata["managedFields"] = managedfields.entries_after_taking(
                metadata["managedFields"], fields, manager=_WRITER, now=self.now
            )
        return {**quota, "metadata": metadata, "status": status}

    def _compute_usage(self, status: Mapping[str, Any]) -> dict[str, quantity.Quantity]:
        """Return the usage after the charge, for the charged resources."""
        before = status.get("used") or {}
        return {
            name: _parse(before[name]) + amount if name in before else amount for name, amount in self.amounts.items()
        }

    def combine(self, later: "QuotaCharge") -> "QuotaCharge":
        """Return two charges to the same quota as one."""
        return msgspec.structs.replace(
            later, amounts=evaluator.add_amounts(self.amounts, later.amounts), is_owed=self.is_owed or later.is_owed
        )


def read(document: Mapping[str, Any]) -> resourcequota.ResourceQuota:
    """Read a stored quota."""
    return codec.view(document, resourcequota.ResourceQuota)
