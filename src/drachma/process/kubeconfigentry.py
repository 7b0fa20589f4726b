"""Entries of a cluster in the kubeconfig that kubectl uses: one cluster, one user and one context of the same name.

Other entries and fields that drachma does not know stay. A lock file next to the kubeconfig, as kubectl and kind make
one, keeps two writers apart.
"""

from __future__ import annotations

import base64
import contextlib
import os
import pathlib
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from drachma import errors
from drachma.api import manifest
from drachma.server.access import kubeconfig

_LISTS: Final = ("clusters", "users", "contexts")
_LOCK_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.05


def choose_file(context: str, *, environment: Mapping[str, str], home: pathlib.Path) -> pathlib.Path:
    """Return the file to change: the file with the context, else the first existing file, else the last file named."""
    listed = [pathlib.Path(part) for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    candidates = listed or [home / ".kube" / "config"]
    existing = [each for each in candidates if each.exists()]
    for each in existing:
        if any(entry.get("name") == context for entry in _entries(_read(each), "contexts")):
            return each
    return existing[0] if existing else candidates[-1]


def merge(path: pathlib.Path, context: str, *, server: str, authority: bytes, token: str) -> str:
    """Write the entries of a cluster and make its context the current one. Return the context that was current before.

    Raises:
        errors.RefusedFileError: the file is not a kubeconfig, or cannot be written.
    """
    cluster = {"server": server, "certificate-authority-data": base64.b64encode(authority).decode()}
    new = {
        "clusters": {"name": context, "cluster": cluster},
        "users": {"name": context, "user": {"token": token}},
        "contexts": {"name": context, "context": {"cluster": context, "user": context, "namespace": "default"}},
    }
    with _locked(path):
        content = _read(path)
        previous = str(content.get("current-context") or "")
        for field, entry in new.items():
            content[field] = [*(each for each in _entries(content, field) if each.get("name") != context), entry]
        kubeconfig.write(path, {"apiVersion": "v1", "kind": "Config", **content, "current-context": context})
    return previous


def leave(path: pathlib.Path, context: str, *, previous: str = "") -> bool:
    """Make the ``previous`` context current again if this one is; return False if it is not. The entries stay.

    Raises:
        errors.RefusedFileError: the file is not a kubeconfig, or cannot be written.
    """
    if not path.exists():
        return False
    with _locked(path):
        content = _read(path)
        if content.get("current-context") != context:
            return False
        kubeconfig.write(path, {**content, "current-context": _current_without(content, context, previous)})
    return True


def remove(path: pathlib.Path, context: str, *, previous: str = "") -> bool:
    """Remove the entries of a cluster; return False if there were none.

    If its context is the current one, the ``previous`` context becomes current again, if it still exists.

    Raises:
        errors.RefusedFileError: the file is not a kubeconfig, or cannot be written.
    """
    if not path.exists():
        return False
    with _locked(path):
        content = _read(path)
        names = {each.get("name") for each in _entries(content, "contexts")}
        if context not in names:
            return False
        if content.get("current-context") == context:
            content["current-context"] = _current_without(content, context, previous)
        for field in _LISTS:
            content[field] = [each for each in _entries(content, field) if each.get("name") != context]
        kubeconfig.write(path, content)
    return True


def _current_without(content: Mapping[str, Any], context: str, previous: str) -> str:
    """Return the context to make current instead of this one: the previous one if it still exists, else none."""
    names = {each.get("name") for each in _entries(content, "contexts")}
    return previous if previous in names - {context} else ""


def _read(path: pathlib.Path) -> dict[str, Any]:
    try:
        text = path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise errors.RefusedFileError(f"kubeconfig {path}: cannot be read: {error.strerror}") from None
    if not text.strip():
        return {}
    try:
        documents = manifest.read(text)
    except errors.DecodeError as error:
        raise errors.RefusedFileError(f"kubeconfig {path}: {error}") from None
    content = documents[0].content if len(documents) == 1 else None
    if not isinstance(content, dict) or content.get("kind", "Config") != "Config":
        raise errors.RefusedFileError(f"kubeconfig {path}: expected one object of kind Config")
    for field in _LISTS:
        _entries(content, field, path=path)
    return content


def _entries(content: Mapping[str, Any], field: str, *, path: pathlib.Path | None = None) -> list[dict[str, Any]]:
    entries = content.get(field) or []
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise errors.RefusedFileError(f"kubeconfig {path}: {field}: expected a list of named entries")
    return entries


@contextlib.contextmanager
def _locked(path: pathlib.Path) -> Iterator[None]:
    lock = path.with_name(f"{path.name}.lock")
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            break
        except FileExistsError:
            if time.monotonic() > deadline:
                raise errors.RefusedFileError(
                    f"kubeconfig {path}: locked by another program; if none is running, delete {lock}"
                ) from None
            time.sleep(_POLL_SECONDS)
        except OSError as error:
            raise errors.RefusedFileError(f"kubeconfig {path}: cannot be written: {error.strerror}") from None
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
