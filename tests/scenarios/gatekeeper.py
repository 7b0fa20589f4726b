"""Something that stands between components and the server, and lets a test act at exactly the wrong moment."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

from drachma.client import Client

_WRITES = ("create", "update", "patch", "delete", "bind")


class Gatekeeper:
    """Components' writes pass here one by one. ``before`` acts ahead of the first write that it is meant for."""

    def __init__(self) -> None:
        self._plans: list[tuple[Callable[[str, dict[str, Any]], bool], Callable[[], Awaitable[None]]]] = []
        self.acted = 0

    def before(self, verb: str, act: Callable[[], Awaitable[None]], *, name: str = "", subresource: str = "") -> None:
        """Acts once, ahead of a write of this verb to the object of this name, if one is given."""

        def is_meant(seen: str, about: dict[str, Any]) -> bool:
            return seen == verb and about["name"] in (name or about["name"],) and about["subresource"] == subresource

        self._plans.append((is_meant, act))

    def wrap(self, client: Client) -> Client:
        return cast(Client, _Passing(client, self))

    async def pass_through(self, verb: str, name: str, *, subresource: str) -> None:
        about = {"name": name, "subresource": subresource}
        plan = next((each for each in self._plans if each[0](verb, about)), None)
        if plan is not None:
            self._plans.remove(plan)
            self.acted += 1
            await plan[1]()


class _Passing:
    """A client whose writes are announced first, one at a time."""

    def __init__(self, client: Client, keeper: Gatekeeper) -> None:
        self._client = client
        self._keeper = keeper

    def __getattr__(self, name: str) -> Any:
        if name == "commit":
            raise AttributeError(name)
        found = getattr(self._client, name)
        if name not in _WRITES:
            return found

        async def announced(*arguments: Any, **options: Any) -> Any:
            subject = arguments[1] if name in ("patch", "delete") else arguments[0].metadata.name
            await self._keeper.pass_through(name, subject, subresource=options.get("subresource", ""))
            return await found(*arguments, **options)

        return announced


class Barrier:
    """Holds whoever comes until so many are there; then all go on at once."""

    def __init__(self, count: int) -> None:
        self._missing = count
        self._all_there = asyncio.Event()

    async def wait(self) -> None:
        self._missing -= 1
        if self._missing <= 0:
            self._all_there.set()
        await self._all_there.wait()
