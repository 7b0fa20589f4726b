"""A client that can be cut off, for components that die: from then on nothing that they still try arrives."""

from typing import Any, cast

from drachma import errors
from drachma.client import Client

_CALLS = frozenset(
    {
        "create",
        "create_document",
        "update",
        "update_document",
        "patch",
        "patch_document",
        "patch_stored",
        "delete",
        "get",
        "get_document",
        "list",
        "bind",
        "evict",
        "commit",
    }
)


class Lifeline:
    """Stands between one component and its client."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._is_cut = False

    @property
    def client(self) -> Client:
        return cast(Client, self)

    def cut(self) -> None:
        self._is_cut = True

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)
        if name not in _CALLS:
            return call

        async def passed_on(*arguments: Any, **options: Any) -> Any:
            if self._is_cut:
                raise errors.UnreachableError("cut off")
            return await call(*arguments, **options)

        return passed_on
