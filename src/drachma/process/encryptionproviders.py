"""Providers of encryption at rest whose keys are in the configuration: identity, aesgcm and aescbc.

Stored bytes are what upstream's providers of the same names write: a prefix with the name of the key, a random nonce,
and the ciphertext.
"""

import abc
import os
from collections.abc import Sequence
from typing import Final, Protocol

from cryptography import exceptions
from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, aead, algorithms, modes

from drachma import errors
from drachma.store import cipher

NONCE_BYTES: Final = 12
_BLOCK_BITS: Final = 128
_BLOCK_BYTES: Final = _BLOCK_BITS // 8


class Provider(Protocol):
    """Encrypts bodies, and decrypts those that it recognises. Called from several threads."""

    def recognises(self, data: bytes) -> bool:
        """Return True if a stored body is of this provider."""

    def encrypt(self, data: bytes, *, path: bytes) -> bytes:
        """Return the stored form of a body. Raises errors.CipherError."""

    def decrypt(self, data: bytes, *, path: bytes) -> bytes:
        """Return the plain form of a stored body. Raises errors.CipherError."""

    def refresh(self) -> None:
        """Take over a changed key. Raises errors.CipherError."""


class Key:
    """Name and bytes of a key."""

    def __init__(self, name: str, secret: bytes) -> None:
        self.name: Final = name
        self.secret: Final = secret


class Identity:
    """Stores bodies as they are."""

    def recognises(self, data: bytes) -> bool:
        return not data.startswith(cipher.PREFIX)

    def encrypt(self, data: bytes, *, path: bytes) -> bytes:
        return data

    def decrypt(self, data: bytes, *, path: bytes) -> bytes:
        return data

    def refresh(self) -> None:
        return


class _Keyed(abc.ABC):
    """A provider with several keys: the first one encrypts, and each decrypts what bears its name."""

    kind = ""

    def __init__(self, keys: Sequence[Key]) -> None:
        self._prefix = f"k8s:enc:{self.kind}:v1:".encode()
        self._keys = {key.name.encode(): key.secret for key in keys}
        self._first = keys[0].name.encode()

    def recognises(self, data: bytes) -> bool:
        return data.startswith(self._prefix)

    def encrypt(self, data: bytes, *, path: bytes) -> bytes:
        secret = self._keys[self._first]
        return b"".join((self._prefix, self._first, b":", self._encrypt(secret, data, path)))

    def decrypt(self, data: bytes, *, path: bytes) -> bytes:
        name, _, sealed = data[len(self._prefix) :].partition(b":")
        secret = self._keys.get(name)
        if secret is None:
            raise errors.CipherError(f"no {self.kind} provider has the key {name.decode(errors='replace')!r}")
        try:
            return self._decrypt(secret, sealed, path)
        except (exceptions.InvalidTag, ValueError) as error:
            raise errors.CipherError(f"the {self.kind} key {name.decode()!r} does not decrypt it") from error

    def refresh(self) -> None:
        return

    @abc.abstractmethod
    def _encrypt(self, secret: bytes, data: bytes, path: bytes) -> bytes:
        """Return data encrypted with a key."""

    @abc.abstractmethod
    def _decrypt(self, secret: bytes, sealed: bytes, path: bytes) -> bytes:
        """Return data decrypted with a key. Raises InvalidTag or ValueError if it is not of that key."""


class AesGcm(_Keyed):
    """AES-GCM; a body is bound to the path of its object."""

    kind = "aesgcm"

    def _encrypt(self, secret: bytes, data: bytes, path: bytes) -> bytes:
        return seal_gcm(secret, data, path)

    def _decrypt(self, secret: bytes, sealed: bytes, path: bytes) -> bytes:
        return open_gcm(secret, sealed, path)


class AesCbc(_Keyed):
    """AES-CBC with PKCS#7 padding, which does not notice a changed body."""

    kind = "aescbc"

    def _encrypt(self, secret: bytes, data: bytes, path: bytes) -> bytes:
        start = os.urandom(_BLOCK_BYTES)
        padder = padding.PKCS7(_BLOCK_BITS).padder()
        encryptor = Cipher(algorithms.AES(secret), modes.CBC(start)).encryptor()
        return start + encryptor.update(padder.update(data) + padder.finalize()) + encryptor.finalize()

    def _decrypt(self, secret: bytes, sealed: bytes, path: bytes) -> bytes:
        decryptor = Cipher(algorithms.AES(secret), modes.CBC(sealed[:_BLOCK_BYTES])).decryptor()
        unpadder = padding.PKCS7(_BLOCK_BITS).unpadder()
        padded = decryptor.update(sealed[_BLOCK_BYTES:]) + decryptor.finalize()
        return unpadder.update(padded) + unpadder.finalize()


def seal_gcm(secret: bytes, data: bytes, path: bytes) -> bytes:
    """Return a random nonce and the ciphertext."""
    nonce = os.urandom(NONCE_BYTES)
    return nonce + aead.AESGCM(secret).encrypt(nonce, data, path)


def open_gcm(secret: bytes, sealed: bytes, path: bytes) -> bytes:
    """Return the plaintext. Raises exceptions.InvalidTag, ValueError."""
    return aead.AESGCM(secret).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], path)
