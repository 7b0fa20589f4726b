"""The kms provider of encryption at rest: keys come from a plugin behind a socket (KMS v2).

The plugin encrypts one random seed; every body has a key of its own that is derived from the seed. So writes never wait
for the plugin, and a restart asks it once for each seed that stored bodies have. When the plugin's key changes, a new
seed is made for later writes.
"""

import os
import threading
import uuid
from typing import Any, Final

import grpc
from cryptography import exceptions
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from google.protobuf.message import DecodeError

from drachma import errors
from drachma.nodewire.rpc import messages
from drachma.process import encryptionproviders

PLUGIN: Final = messages.Messages(
    "v2",
    """
StatusRequest:
StatusResponse: version=string healthz=string key_id=string
DecryptRequest: ciphertext=bytes uid=string key_id=string annotations=<bytes>
DecryptResponse: plaintext=bytes
EncryptRequest: plaintext=bytes uid=string
EncryptResponse: ciphertext=bytes key_id=string annotations=<bytes>
EncryptedObject: encryptedData=bytes keyID=string encryptedDEKSource=bytes annotations=<bytes>
 encryptedDEKSourceType=EncryptedDEKSourceType
EncryptedDEKSourceType: AES_GCM_KEY | HKDF_SHA256_XNONCE_AES_GCM_SEED
""",
)
"""Messages of the plugin's API, and the form of stored bodies."""

SERVICE: Final = "v2.KeyManagementService"
_SEED: Final = 1
_VERSIONS: Final = frozenset({"v2", "v2beta1"})
_SEED_BYTES: Final = 32
_INFO_BYTES: Final = 32


class _Seed:
    """A seed, and the encrypted form of it that is stored with each body."""

    def __init__(self, seed: bytes, *, sealed: bytes, key_id: str, annotations: dict[str, bytes]) -> None:
        self.seed: Final = seed
        self.sealed: Final = sealed
        self.key_id: Final = key_id
        self.annotations: Final = annotations


class Kms:
    def __init__(self, name: str, *, endpoint: str, seconds: float) -> None:
        self._name = name
        self._prefix = f"k8s:enc:kms:v2:{name}:".encode()
        self._seconds = seconds
        self._channel = grpc.insecure_channel(endpoint)
        self._lock = threading.Lock()
        self._current: _Seed | None = None
        self._seeds: dict[bytes, bytes] = {}

    def recognises(self, data: bytes) -> bool:
        return data.startswith(self._prefix)

    def encrypt(self, data: bytes, *, path: bytes) -> bytes:
        current = self._current
        if current is None:
            self.refresh()
            current = self._current
            assert current is not None, "a refresh without an error makes a seed"
        info = os.urandom(_INFO_BYTES)
        envelope = PLUGIN.EncryptedObject(
            encryptedData=info + encryptionproviders.seal_gcm(_derive(current.seed, info), data, path),
            keyID=current.key_id,
            encryptedDEKSource=current.sealed,
            annotations=current.annotations,
            encryptedDEKSourceType=_SEED,
        )
        return self._prefix + bytes(envelope.SerializeToString())

    def decrypt(self, data: bytes, *, path: bytes) -> bytes:
        try:
            envelope = PLUGIN.EncryptedObject.FromString(data[len(self._prefix) :])
        except DecodeError as error:
            raise errors.CipherError(f"kms provider {self._name!r}: it cannot be read: {error}") from error
        seed = self._seed(envelope)
        sealed = bytes(envelope.encryptedData)
        try:
            if envelope.encryptedDEKSourceType != _SEED:
                return encryptionproviders.open_gcm(seed, sealed, path)
            info = sealed[:_INFO_BYTES]
            return encryptionproviders.open_gcm(_derive(seed, info), sealed[_INFO_BYTES:], path)
        except (exceptions.InvalidTag, ValueError) as error:
            raise errors.CipherError(f"kms provider {self._name!r}: its key does not decrypt it") from error

    def refresh(self) -> None:
        """Ask the plugin for its state, and make a new seed if its key has changed."""
        with self._lock:
            status = self._call("Status", PLUGIN.StatusRequest())
            if status.version not in _VERSIONS or status.healthz != "ok" or not status.key_id:
                raise errors.CipherError(
                    f"kms provider {self._name!r}: the plugin is not ready: version {status.version!r}, "
                    f"healthz {status.healthz!r}, key_id {status.key_id!r}"
                )
            if self._current is not None and self._current.key_id == status.key_id:
                return
            seed = os.urandom(_SEED_BYTES)
            answer = self._call("Encrypt", PLUGIN.EncryptRequest(plaintext=seed, uid=str(uuid.uuid4())))
            sealed = bytes(answer.ciphertext)
            self._seeds[sealed] = seed
            self._current = _Seed(seed, sealed=sealed, key_id=str(answer.key_id), annotations=dict(answer.annotations))

    def _seed(self, stored: Any) -> bytes:
        sealed = bytes(stored.encryptedDEKSource)
        with self._lock:
            seed = self._seeds.get(sealed)
            if seed is None:
                request = PLUGIN.DecryptRequest(
                    ciphertext=sealed, uid=str(uuid.uuid4()), key_id=stored.keyID, annotations=dict(stored.annotations)
                )
                seed = self._seeds[sealed] = bytes(self._call("Decrypt", request).plaintext)
            return seed

    def _call(self, method: str, request: Any) -> Any:
        response = getattr(PLUGIN, f"{method}Response")
        ask = self._channel.unary_unary(f"/{SERVICE}/{method}", type(request).SerializeToString, response.FromString)
        try:
            return ask(request, timeout=self._seconds)
        except grpc.RpcError as error:
            raise errors.CipherError(f"kms provider {self._name!r}: {method} failed: {_reason(error)}") from error


def _derive(seed: bytes, info: bytes) -> bytes:
    return HKDFExpand(algorithm=hashes.SHA256(), length=32, info=info).derive(seed)


def _reason(error: grpc.RpcError) -> str:
    details = getattr(error, "details", None)
    return str(details() if callable(details) else error)
