"""The ConfigMap by which extension API servers recognise this server and the users whose requests it passes on."""

from typing import Any, Final

import msgspec

from drachma.server import mediatypes
from drachma.server.access import certificates
from drachma.server.calls.call import Body, Call, Target
from drachma.server.pipeline.dispatcher import Dispatcher
from drachma.server.surface import verbs
from drachma.server.user import User
from drachma.store import record

_SERVER: Final = User(name="system:apiserver", groups=("system:masters",))
_NAMESPACE: Final = "kube-system"
_NAME: Final = "extension-apiserver-authentication"


async def publish(dispatcher: Dispatcher, *, authority: str) -> None:
    """Create the ConfigMap, or update it if it names another authority (PEM) than this server's."""
    resource = dispatcher.surface.find("", "v1", plural="configmaps")
    assert resource is not None, "ConfigMaps are served"
    content = {
        "client-ca-file": authority,
        "requestheader-allowed-names": msgspec.json.encode([certificates.KUBELET_CLIENT]).decode(),
        "requestheader-client-ca-file": authority,
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-uid-headers": '["X-Remote-Uid"]',
        "requestheader-username-headers": '["X-Remote-User"]',
    }
    existing = dispatcher.services.store.get(record.Key(resource.key, _NAMESPACE, _NAME))
    if existing is not None and existing.value.get("data") == content:
        return
    document: dict[str, Any] = {"metadata": {"name": _NAME, "namespace": _NAMESPACE}, "data": content}
    call = Call(
        user=_SERVER,
        verb=verbs.CREATE if existing is None else verbs.UPDATE,
        surface=dispatcher.surface,
        target=Target(resource, "v1", _NAMESPACE, "" if existing is None else _NAME, None),
        body=Body(msgspec.json.encode(document), mediatypes.JSON),
        user_agent="kube-apiserver",
    )
    await dispatcher.dispatch(call)
