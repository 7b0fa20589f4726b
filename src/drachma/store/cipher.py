"""Ciphers: the form that objects have on disk. In memory they are always plain.

The journal seals each body before it writes it, and opens each body that it reads at the start. Checksums of rows are
made of sealed bodies, so files can be checked, repaired, backed up and restored without any key.
"""

from typing import Protocol

from drachma import errors
from drachma.store import record

PREFIX = b"k8s:enc:"
"""Begins every sealed body, as in upstream's etcd; plain bodies are JSON and begin otherwise."""


class Cipher(Protocol):
    """Seals and opens bodies. Called from several threads."""

    def covers(self, resource: str) -> bool:
        """Return True if objects of a resource are sealed, or may have been."""

    def seal(self, key: record.Key, data: bytes) -> bytes:
        """Return the form in which a body is stored. Raises errors.CipherError."""

    def open(self, key: record.Key, data: bytes) -> bytes:
        """Return the plain form of a stored body. Raises errors.CipherError."""


class Plain:
    """Stores bodies as they are, and refuses sealed ones, because it has no key for them."""

    def covers(self, _resource: str) -> bool:
        return False

    def seal(self, _key: record.Key, data: bytes) -> bytes:
        return data

    def open(self, key: record.Key, data: bytes) -> bytes:
        if data.startswith(PREFIX):
            raise errors.CipherError(
                f"{key}: encrypted ({':'.join(data[:80].decode('latin-1').split(':')[2:5])}), and no provider can "
                "decrypt it; start with --encryption-provider-config"
            )
        return data


class Untouched:
    """Leaves bodies in the form that they have in the file, for work on files without keys."""

    def covers(self, _resource: str) -> bool:
        return False

    def seal(self, _key: record.Key, data: bytes) -> bytes:
        return data

    def open(self, _key: record.Key, data: bytes) -> bytes:
        return data
