"""Controller of ``kube-root-ca.crt``: a config map in every namespace with the API server's certificate authority."""

from typing import Final

from drachma import errors
from drachma.api import configmap, meta, namespace
from drachma.runtime import Surroundings, controller, informer, workqueue

NAME: Final = "kube-root-ca.crt"
WORKERS: Final = 5

_KEY: Final = "ca.crt"
_DESCRIPTION: Final = {
    "kubernetes.io/description": (
        "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
        "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of "
        "Kubernetes clusters."
    )
}


class RootCertificatePublisher:
    """Writes the config map into every active namespace, and restores it."""

    name: Final = "root_ca_certificate_publisher"

    def __init__(self, surroundings: Surroundings) -> None:
        namespaces = surroundings.informers.of(namespace.Namespace)
        maps = surroundings.informers.of(configmap.ConfigMap)
        self._client: Final = surroundings.client
        self._data: Final = {_KEY: surroundings.credentials.authority}
        self._namespaces: Final = namespaces.cache
        self._maps: Final = maps.cache
        self._queue: Final[workqueue.Queue[str]] = workqueue.Queue(
            "root_ca_cert_publisher", clock=surroundings.clock, metrics=surroundings.queues
        )
        namespaces.add_handler(informer.Handler.on_write(self._enqueue))
        maps.add_handler(informer.Handler(updated=lambda _, new: self._handle_map(new), deleted=self._handle_map))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    def _enqueue(self, new: namespace.Namespace) -> None:
        self._queue.add(new.metadata.name)

    def _handle_map(self, changed: configmap.ConfigMap) -> None:
        if changed.metadata.name == NAME:
            self._queue.add(changed.metadata.namespace)

    async def _reconcile(self, name: str) -> None:
        place = self._namespaces.get(name)
        if place is None or place.status.phase != "Active":
            return
        current = self._maps.get(NAME, namespace=name)
        try:
            if current is None:
                await self._client.create(self._made(name))
            elif dict(current.data) != self._data or not _has_description(current):
                await self._rewrite(name)
        except (errors.ObjectExistsError, errors.ObjectNotFoundError, errors.ObjectConflictError):
            # The informer is behind, or the namespace is gone; the watch triggers a reconcile.
            pass
        except errors.ForbiddenError:
            if (current_place := self._namespaces.get(name)) is not None and current_place.status.phase == "Active":
                raise

    async def _rewrite(self, name: str) -> None:
        document = await self._client.get_document(configmap.ConfigMap, NAME, namespace=name)
        metadata = document["metadata"]
        annotations = {**(metadata.get("annotations") or {}), **_DESCRIPTION}
        changed = {**document, "metadata": {**metadata, "annotations": annotations}, "data": self._data}
        await self._client.update_document(configmap.ConfigMap, changed)

    def _made(self, name: str) -> configmap.ConfigMap:
        metadata = meta.ObjectMeta(name=NAME, namespace=name, annotations=_DESCRIPTION)
        return configmap.ConfigMap(metadata=metadata, data=self._data)


def _has_description(current: configmap.ConfigMap) -> bool:
    return _DESCRIPTION.items() <= dict(current.metadata.annotations or {}).items()
