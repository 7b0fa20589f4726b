"""The account ``default``: every namespace that stays has it, and gets it again where somebody deletes it."""

from typing import Final

from drachma import errors
from drachma.api import meta, namespace, serviceaccount
from drachma.runtime import Surroundings, controller, informer, workqueue

DEFAULT: Final = "default"
WORKERS: Final = 5


class ServiceAccountController:
    """Makes the account of pods that name none."""

    name: Final = "serviceaccount"

    def __init__(self, surroundings: Surroundings) -> None:
        namespaces = surroundings.informers.of(namespace.Namespace)
        accounts = surroundings.informers.of(serviceaccount.ServiceAccount)
        self._client: Final = surroundings.client
        self._namespaces: Final = namespaces.cache
        self._accounts: Final = accounts.cache
        self._queue: Final[workqueue.Queue[str]] = workqueue.Queue(
            "serviceaccount", time=surroundings.clock, measured=surroundings.queues
        )
        namespaces.add_handler(informer.Handler(added=self._see, updated=lambda _, new: self._see(new)))
        accounts.add_handler(informer.Handler(deleted=self._see_deleted))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    def _see(self, new: namespace.Namespace) -> None:
        self._queue.add(new.metadata.name)

    def _see_deleted(self, gone: serviceaccount.ServiceAccount) -> None:
        if gone.metadata.name == DEFAULT:
            self._queue.add(gone.metadata.namespace)

    async def _reconcile(self, name: str) -> None:
        place = self._namespaces.get(name)
        if place is None or place.status.phase != "Active" or self._accounts.get(DEFAULT, namespace=name) is not None:
            return
        made = serviceaccount.ServiceAccount(metadata=meta.ObjectMeta(name=DEFAULT, namespace=name))
        try:
            await self._client.create(made)
        except errors.ObjectExistsError:
            # The informer is behind.
            pass
        except (errors.ObjectNotFoundError, errors.ForbiddenError):
            if await self._is_active(name):
                raise

    async def _is_active(self, name: str) -> bool:
        """Whether a namespace is still to have accounts."""
        try:
            place = await self._client.get(namespace.Namespace, name)
        except errors.ObjectNotFoundError:
            return False
        return place.status.phase == "Active"
