"""Access from inside a cluster: the service account that Kubernetes mounts into every pod.

The token is named as a file and not read here, because it is renewed while the process runs. An ``errors.AccessError``
says what is missing where the process is not in a pod.
"""

import pathlib
from collections.abc import Mapping
from typing import Final

from drachma import errors
from drachma.client import access

MOUNT: Final = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")


def is_inside(environment: Mapping[str, str]) -> bool:
    """Whether the process runs in a pod that knows its API server."""
    return bool(environment.get("KUBERNETES_SERVICE_HOST") and environment.get("KUBERNETES_SERVICE_PORT"))


def load(*, environment: Mapping[str, str], mount: pathlib.Path = MOUNT) -> access.Access:
    """The access of the pod's service account."""
    if not is_inside(environment):
        raise errors.AccessError(
            "not inside a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"
        )
    host, port = environment["KUBERNETES_SERVICE_HOST"], environment["KUBERNETES_SERVICE_PORT"]
    address = f"[{host}]" if ":" in host else host
    token = mount / "token"
    _read(token)
    namespace = mount / "namespace"
    return access.Access(
        server=f"https://{address}:{port}",
        source=f"service account {mount}",
        namespace=_read(namespace).decode().strip() if namespace.exists() else "default",
        certificate_authority=_read(mount / "ca.crt"),
        token_file=token,
    )


def _read(path: pathlib.Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise errors.AccessError(f"service account {path}: cannot be read: {error.strerror}") from None
