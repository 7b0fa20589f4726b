"""Bootstrap of kubelets without a certificate, as kubeadm does it: a token that is valid for a day, and its roles.

A client with the token may only request a node's client certificate, which is approved at once. With that certificate
the node may request the next one. Serving certificates of kubelets need manual approval, as in any cluster.
"""

import base64
import datetime as dt
import secrets
import string
from collections.abc import Iterator
from typing import Any, Final

from drachma.api import bootstraptoken, meta
from drachma.server import bootstrap
from drachma.server.pipeline.dispatcher import Dispatcher

LIFETIME: Final = dt.timedelta(days=1)

_GROUP: Final = "system:bootstrappers:kubeadm:default-node-token"
_REQUESTS: Final = "system:certificates.k8s.io:certificatesigningrequests"
_BINDINGS: Final = (
    ("kubeadm:kubelet-bootstrap", "system:node-bootstrapper", _GROUP),
    ("kubeadm:node-autoapprove-bootstrap", f"{_REQUESTS}:nodeclient", _GROUP),
    ("kubeadm:node-autoapprove-certificate-rotation", f"{_REQUESTS}:selfnodeclient", "system:nodes"),
)
_LETTERS: Final = string.digits + string.ascii_lowercase


async def prepare(dispatcher: Dispatcher, *, now: dt.datetime) -> str:
    """Create a token and its role bindings, and return the token. Earlier tokens stay valid."""
    name, secret = _random_text(6), _random_text(16)
    for document in (_secret(name, secret, end=now + LIFETIME), *_role_bindings()):
        await bootstrap.ensure(dispatcher, document)
    return f"{name}.{secret}"


def _secret(name: str, secret: str, *, end: dt.datetime) -> dict[str, Any]:
    data = {
        "token-id": name,
        "token-secret": secret,
        "expiration": meta.time_text(end),
        "usage-bootstrap-authentication": "true",
        "auth-extra-groups": _GROUP,
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"{bootstraptoken.NAME_PREFIX}{name}", "namespace": bootstraptoken.NAMESPACE},
        "type": bootstraptoken.TYPE,
        "data": {key: base64.b64encode(text.encode()).decode() for key, text in data.items()},
    }


def _role_bindings() -> Iterator[dict[str, Any]]:
    for name, role, group in _BINDINGS:
        yield {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}],
        }


def _random_text(length: int) -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(length))
