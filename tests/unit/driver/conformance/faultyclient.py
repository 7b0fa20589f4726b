"""A client whose requests meet the faults that rules inject: what stands between driver and server in one process."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from drachma.client import Client, refusal, target
from drachma.driver.conformance.apifaults import ApiFaults, Fault

_METHODS = {
    "get": "GET",
    "get_document": "GET",
    "list": "GET",
    "create": "POST",
    "create_document": "POST",
    "update": "PUT",
    "update_document": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
}


def wrap(client: Client, faults: ApiFaults) -> Client:
    """The same client for a driver; watches, which refuse nothing by themselves, are what they are."""
    return cast(Client, _FaultyClient(client, faults))


class _FaultyClient:
    def __init__(self, client: Client, faults: ApiFaults) -> None:
        self._client = client
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        return self._met(method, _METHODS[name]) if name in _METHODS else method

    def _met(self, method: Callable[..., Any], verb: str) -> Callable[..., Any]:
        async def act(subject: Any, *arguments: Any, **options: Any) -> Any:
            is_kind = isinstance(subject, type | target.Target)
            path = target.of(subject if is_kind else type(subject)).path("v1")
            fault = self._faults.meet(verb, path)
            if fault is not None:
                await self._suffer(fault)
            return await method(subject, *arguments, **options)

        return act

    async def _suffer(self, fault: Fault) -> None:
        await asyncio.sleep(fault.seconds)
        if fault.status is not None:
            raise refusal.error(fault.status)
