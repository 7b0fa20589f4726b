"""Charges: what a write adds to the use that the status of a quota tells of.

A charge is booked in the commit of the write that it is for, on the quota as it is by then: whoever else has been
charged in the meantime, there is room or the write does not happen.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from drachma.accounting.quota import amounts
from drachma.api import codec, resourcequota
from drachma.server.ownership import fieldset, managedfields, managers
from drachma.store import record
from drachma.values import quantity

_parse = quantity.Quantity.parse

_WRITER: Final = managers.Manager("kube-apiserver", managers.UPDATE, "v1", "status")
"""Who owns what a charge changes of a quota, as upstream."""


class QuotaCharge(msgspec.Struct, frozen=True, kw_only=True):
    """A charge to one quota. It was weighed against ``spec`` and ``hard``, and means nothing where they are others.

    ``is_owed`` is one that is booked even if there is no room.
    """

    key: record.Key
    uid: str
    amounts: amounts.Amounts
    spec: Mapping[str, Any]
    hard: Mapping[str, Any]
    now: datetime
    is_owed: bool = False

    def holds(self, quota: record.Record) -> bool:
        """Whether it can be booked on a version of the quota."""
        document = quota.value
        status = document.get("status") or {}
        if quota.uid != self.uid or status.get("hard") != self.hard or document.get("spec") != self.spec:
            return False
        if self.is_owed:
            return True
        used = self._used(status)
        return all(used[name] <= _parse(self.hard[name]) for name in self.amounts)

    def booked(self, quota: Mapping[str, Any]) -> dict[str, Any]:
        """The quota after the charge."""
        used = {**(quota["status"].get("used") or {})}
        used.update((name, str(amount)) for name, amount in self._used(quota["status"]).items())
        status = {**quota["status"], "used": dict(sorted(used.items()))}
        fields: fieldset.FieldSet = {"f:status": {"f:used": {fieldset.field(name): {} for name in self.amounts}}}
        metadata = dict(quota["metadata"])
        if metadata.get("managedFields"):
            metadata["managedFields"] = managedfields.entries_after_taking(
                metadata["managedFields"], fields, manager=_WRITER, now=self.now
            )
        return {**quota, "metadata": metadata, "status": status}

    def _used(self, status: Mapping[str, Any]) -> dict[str, quantity.Quantity]:
        """What is used after the charge, of what it is for."""
        before = status.get("used") or {}
        return {
            name: _parse(before[name]) + amount if name in before else amount for name, amount in self.amounts.items()
        }

    def with_more(self, later: "QuotaCharge") -> "QuotaCharge":
        """Two charges to the same quota as one."""
        return msgspec.structs.replace(
            later, amounts=amounts.add(self.amounts, later.amounts), is_owed=self.is_owed or later.is_owed
        )


def read(document: Mapping[str, Any]) -> resourcequota.ResourceQuota:
    """A stored quota."""
    return codec.view(document, resourcequota.ResourceQuota)
