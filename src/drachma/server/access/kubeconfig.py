"""The admin's credentials: a bearer token in the data directory, and a kubeconfig for clients."""

import base64
import os
import pathlib
import secrets
import tempfile
from typing import Any

from drachma import errors
from drachma.api import manifest


def ensure_token(path: pathlib.Path) -> str:
    """Return the token in a file, which is created if it does not exist."""
    try:
        if path.exists():
            token = path.read_text(encoding="ascii").strip()
            if token:
                return token
        token = secrets.token_urlsafe(32)
        write_private(path, f"{token}\n".encode())
    except (OSError, UnicodeDecodeError) as error:
        raise errors.RefusedFileError(f"token file {path}: cannot be used: {error}") from error
    return token


def document(server: str, *, authority: bytes, token: str, user: str = "admin") -> dict[str, Any]:
    """Return a kubeconfig with one cluster, one user and one context."""
    encoded = base64.b64encode(authority).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "drachma", "cluster": {"server": server, "certificate-authority-data": encoded}}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "drachma", "context": {"cluster": "drachma", "user": user, "namespace": "default"}}],
        "current-context": "drachma",
    }


def write(path: pathlib.Path, content: dict[str, Any]) -> None:
    """Write a kubeconfig that only its owner can read. A concurrent reader sees the old file or the new one."""
    try:
        write_private(path, manifest.write_yaml([content]).encode())
    except OSError as error:
        raise errors.RefusedFileError(f"kubeconfig {path}: cannot be written: {error.strerror}") from error


def write_private(path: pathlib.Path, data: bytes) -> None:
    """Write a file atomically, readable by its owner only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        pathlib.Path(name).replace(path)
    except BaseException:
        pathlib.Path(name).unlink(missing_ok=True)
        raise
