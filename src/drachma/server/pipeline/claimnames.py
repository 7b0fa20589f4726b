"""The names of generated claims in the status of their pod, as a change of whatever is stored.

Components in process ask for it (``transactions.ClaimNames``). It comes out as the strategic merge patch of
``status.resourceClaimStatuses`` does that clients send. That is what decides where the pod has such names already, or
is not the one that is meant.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from drachma.client import patches, transactions
from drachma.server.pipeline import update
from drachma.server.surface.strategy import Subject, Write

_FIELD: Final = "resourceClaimStatuses"


class ClaimNames:
    """Names claims in a pod without any; ``otherwise`` makes the change of a pod that is patched with a text."""

    def __init__(
        self, wanted: transactions.ClaimNames, write: Write, *, otherwise: Callable[[bytes], update.Change]
    ) -> None:
        self._wanted = wanted
        self._write = write
        self._otherwise = otherwise

    def __call__(self, stored: Mapping[str, Any] | None) -> Subject:
        wanted = self._wanted
        status = None if stored is None else stored.get("status")
        if stored is None or not status or _FIELD in status or stored["metadata"]["uid"] != wanted.known.metadata.uid:
            patch = patches.strategic({"status": {_FIELD: wanted.statuses}}, patches.same(wanted.known))
            return self._otherwise(patch.data)(stored)
        strategy = self._write.served.strategy
        named = {**status, _FIELD: [msgspec.to_builtins(each) for each in wanted.statuses]}
        return strategy.restate(strategy.load(stored), named, fields=(_FIELD,))
