"""Controller of token secrets: fills a secret that names an account with a token, and deletes it with the account."""

import base64
from typing import Any, Final

from drachma import errors
from drachma.api import secret, serviceaccount
from drachma.client import patches
from drachma.runtime import Surroundings, controller, informer, workqueue

WORKERS: Final = 5
TYPE: Final = "kubernetes.io/service-account-token"
ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
ACCOUNT_UID: Final = "kubernetes.io/service-account.uid"


class TokenController:
    """Fills secrets. It needs a way to mint tokens (``surroundings.credentials``)."""

    name: Final = "serviceaccount_token"

    def __init__(self, surroundings: Surroundings) -> None:
        secrets = surroundings.informers.of(secret.Secret)
        accounts = surroundings.informers.of(serviceaccount.ServiceAccount)
        mint = surroundings.credentials.mint
        assert mint is not None, "made only where tokens can be made"
        self._mint: Final = mint
        self._authority: Final = surroundings.credentials.authority
        self._client: Final = surroundings.client
        self._secrets: Final = secrets.cache
        self._queue: Final[workqueue.Queue[tuple[str, str]]] = workqueue.Queue(
            "serviceaccount_tokens_secret", clock=surroundings.clock, metrics=surroundings.queues
        )
        secrets.add_handler(informer.Handler.on_write(self._enqueue))
        accounts.add_handler(informer.Handler(added=self._handle_account, deleted=self._handle_account))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    def _enqueue(self, new: secret.Secret) -> None:
        if new.type == TYPE:
            self._queue.add((new.metadata.namespace, new.metadata.name))

    def _handle_account(self, changed: serviceaccount.ServiceAccount) -> None:
        for each in self._secrets:
            is_near = each.metadata.namespace == changed.metadata.namespace
            if is_near and _account(each) == changed.metadata.name:
                self._enqueue(each)

    async def _reconcile(self, key: tuple[str, str]) -> None:
        namespace, name = key
        holder = self._secrets.get(name, namespace=namespace)
        if holder is None or holder.type != TYPE or not _account(holder):
            return
        try:
            account = await self._client.get(serviceaccount.ServiceAccount, _account(holder), namespace=namespace)
        except errors.ObjectNotFoundError:
            account = None
        uid = (holder.metadata.annotations or {}).get(ACCOUNT_UID, "")
        try:
            if account is None or (uid and uid != account.metadata.uid):
                await self._client.delete(
                    secret.Secret, name, namespace=namespace, preconditions=patches.unchanged(holder)
                )
            else:
                await self._fill(holder, account)
        except (errors.ObjectNotFoundError, errors.ObjectConflictError):
            # The informer is behind; the watch triggers a reconcile.
            pass

    async def _fill(self, holder: secret.Secret, account: serviceaccount.ServiceAccount) -> None:
        namespace, name = holder.metadata.namespace, holder.metadata.name
        texts = {"ca.crt": self._authority, "namespace": namespace}
        data = {key: _encoded(text) for key, text in texts.items() if text}
        changed: dict[str, Any] = {key: text for key, text in data.items() if holder.data.get(key) != text}
        if not holder.data.get("token"):
            token = self._mint(namespace, account.metadata.name, uid=account.metadata.uid, secret=name)
            changed["token"] = _encoded(token)
        has_uid = (holder.metadata.annotations or {}).get(ACCOUNT_UID) == account.metadata.uid
        if not changed and has_uid:
            return
        document = await self._client.get_document(secret.Secret, name, namespace=namespace)
        metadata = document["metadata"]
        annotations = {**(metadata.get("annotations") or {}), ACCOUNT_UID: account.metadata.uid}
        # Written only on the version that was examined.
        metadata = {**metadata, "annotations": annotations, "resourceVersion": holder.metadata.resource_version}
        data = {**(document.get("data") or {}), **changed}
        await self._client.update_document(secret.Secret, {**document, "metadata": metadata, "data": data})


def _account(holder: secret.Secret) -> str:
    return (holder.metadata.annotations or {}).get(ACCOUNT_NAME, "")


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
