"""Controller of the account ``default``, which every active namespace has."""

from typing import Final

from drachma import errors
from drachma.api import meta, namespace, serviceaccount
from drachma.runtime import Surroundings, controller, informer, workqueue

DEFAULT: Final = "default"
WORKERS: Final = 5


class ServiceAccountController:
    """Creates the default account."""

    name: Final = "serviceaccount"

    def __init__(self, surroundings: Surroundings) -> None:
        namespaces = surroundings.informers.of(namespace.Namespace)
        accounts = surroundings.informers.of(serviceaccount.ServiceAccount)
        self._client: Final = surroundings.client
        self._namespaces: Final = namespaces.cache
        self._accounts: Final = accounts.cache
        self._queue: Final[workqueue.Queue[str]] = workqueue.Queue(
            "serviceaccount", clock=surroundings.clock, metrics=surroundings.queues
        )
        namespaces.add_handler(informer.Handler.on_write(self._enqueue))
        accounts.add_handler(informer.Handler(deleted=self._handle_deletion))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    def _enqueue(self, new: namespace.Namespace) -> None:
        self._queue.add(new.metadata.name)

    def _handle_deletion(self, account: serviceaccount.ServiceAccount) -> None:
        if account.metadata.name == DEFAULT:
            self._queue.add(account.metadata.namespace)

    async def _reconcile(self, name: str) -> None:
        place = self._namespaces.get(name)
        if place is None or place.status.phase != "Active" or self._accounts.get(DEFAULT, namespace=name) is not None:
            return
        account = serviceaccount.ServiceAccount(metadata=meta.ObjectMeta(name=DEFAULT, namespace=name))
        try:
            await self._client.create(account)
        except errors.ObjectExistsError:
            # The informer is behind.
            pass
        except (errors.ObjectNotFoundError, errors.ForbiddenError):
            if await self._is_active(name):
                raise

    async def _is_active(self, name: str) -> bool:
        """Return True if a namespace exists and is active."""
        try:
            place = await self._client.get(namespace.Namespace, name)
        except errors.ObjectNotFoundError:
            return False
        return place.status.phase == "Active"
