"""Controller that deletes expired bootstrap tokens."""

from typing import Final

from drachma import errors
from drachma.api import bootstraptoken, secret
from drachma.client import patches
from drachma.runtime import Surroundings, controller, informer, workqueue


class TokenCleaner:
    """Deletes the secrets of expired tokens."""

    name: Final = "token_cleaner"

    def __init__(self, surroundings: Surroundings) -> None:
        secrets = surroundings.informers.of(secret.Secret)
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._secrets: Final = secrets.cache
        self._queue: Final[workqueue.Queue[str]] = workqueue.Queue(
            self.name, clock=surroundings.clock, metrics=surroundings.queues
        )
        secrets.add_handler(informer.Handler.on_write(self._enqueue))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=1)

    def _enqueue(self, new: secret.Secret) -> None:
        if new.type == bootstraptoken.TYPE and new.metadata.namespace == bootstraptoken.NAMESPACE:
            self._queue.add(new.metadata.name)

    async def _reconcile(self, name: str) -> controller.After | None:
        holder = self._secrets.get(name, namespace=bootstraptoken.NAMESPACE)
        if holder is None or holder.type != bootstraptoken.TYPE:
            return None
        seconds = bootstraptoken.seconds_left(holder.data, self._clock.utc())
        if seconds is None:
            return None
        if seconds > 0:
            return controller.After(seconds)
        try:
            await self._client.delete(
                secret.Secret, name, namespace=bootstraptoken.NAMESPACE, preconditions=patches.same(holder)
            )
        except (errors.ObjectNotFoundError, errors.ObjectConflictError):
            # Deleted already, perhaps replaced by another one.
            return None
        return None
