"""Keys of service account tokens: the key that signs, and all trusted keys.

Keys are RSA or elliptic curves, in PEM. A key's id is upstream's: a hash of its public part. Tokens name the key that
signed them by this id.
"""

import base64
import hashlib
import pathlib
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import jwt
import msgspec
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from drachma import errors
from drachma.server.access import kubeconfig

PrivateKey: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
Public: TypeAlias = rsa.RSAPublicKey | ec.EllipticCurvePublicKey

_ALGORITHMS: Final = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_LABEL: Final = b"-----BEGIN "


class PublicKey(msgspec.Struct, frozen=True, eq=False):
    """Key to verify tokens with one algorithm."""

    key: Public
    id: str
    algorithm: str

    def document(self) -> dict[str, Any]:
        """Return the key as a JWK."""
        shape = jwt.get_algorithm_by_name(self.algorithm).to_jwk(self.key, as_dict=True)
        parts = {name: value for name, value in shape.items() if name != "key_ops"}
        return {"use": "sig", "kid": self.id, "alg": self.algorithm, **parts}


class Keys(msgspec.Struct, frozen=True, eq=False):
    """The signing key, and all trusted keys, which need not include it."""

    private: PrivateKey
    signer: PublicKey
    trusted: tuple[PublicKey, ...]


def generate() -> PrivateKey:
    """Return a new signing key."""
    return ec.generate_private_key(ec.SECP256R1())


def make_keys(private: PrivateKey, trusted: Iterable[Public] = ()) -> Keys:
    """Return keys with a signing key and trusted keys; without any, the signing key is trusted."""
    signer = public_key(private.public_key())
    return Keys(private, signer, tuple(map(public_key, trusted)) or (signer,))


def public_key(key: Public) -> PublicKey:
    """Return a public key with its id and algorithm; ValueError for a curve that tokens do not use."""
    encoded = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    digest = base64.urlsafe_b64encode(hashlib.sha256(encoded).digest()).rstrip(b"=").decode()
    if isinstance(key, rsa.RSAPublicKey):
        return PublicKey(key, digest, "RS256")
    algorithm = _ALGORITHMS.get(key.curve.name)
    if algorithm is None:
        raise ValueError(f"unknown curve {key.curve.name}: must be one of {', '.join(_ALGORITHMS)}")
    return PublicKey(key, digest, algorithm)


def ensure(path: pathlib.Path) -> PrivateKey:
    """Return the private key in a file. It is created if it does not exist, readable by its owner only."""
    if path.exists():
        return load_private(path)
    key = generate()
    try:
        kubeconfig.write_private(path, encode_private(key))
    except OSError as error:
        raise errors.RefusedFileError(f"key file {path}: cannot be written: {error.strerror}") from error
    return key


def encode_private(key: PrivateKey) -> bytes:
    """Return a private key as PEM."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def decode_private(data: bytes) -> PrivateKey:
    """Return the private key that ``encode_private`` has encoded."""
    (key,) = (each for each in _parse(data) if isinstance(each, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey))
    return key


def load_private(path: pathlib.Path) -> PrivateKey:
    """Return the private key in a file; RefusedFileError if the file has no signing key."""
    keys = [key for key in _read(path) if isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey)]
    if not keys:
        raise errors.RefusedFileError(f"key file {path}: no private RSA or elliptic curve key in it")
    return keys[0]


def load_public(path: pathlib.Path) -> list[Public]:
    """Return all keys in a file, of private keys their public part; RefusedFileError if there are none."""
    keys = [
        key.public_key() if isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) else key
        for key in _read(path)
    ]
    if not keys:
        raise errors.RefusedFileError(f"key file {path}: no RSA or elliptic curve key in it")
    return keys


def _read(path: pathlib.Path) -> list[PrivateKey | Public]:
    try:
        blocks = [_LABEL + block for block in path.read_bytes().split(_LABEL)[1:]]
        return [key for block in blocks for key in _parse(block)]
    except OSError as error:
        raise errors.RefusedFileError(f"key file {path}: cannot be read: {error.strerror}") from error
    except (ValueError, TypeError) as error:
        raise errors.RefusedFileError(f"key file {path}: cannot be read: {error}") from error


def _parse(block: bytes) -> list[PrivateKey | Public]:
    """Return the keys in a PEM block; none for other blocks, such as curve parameters."""
    label = block[len(_LABEL) : block.index(b"-----", len(_LABEL))]
    key: object = None
    if label.endswith(b"PRIVATE KEY"):
        key = serialization.load_pem_private_key(block, password=None)
    elif label.endswith(b"PUBLIC KEY"):
        key = serialization.load_pem_public_key(block)
    if isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPublicKey | ec.EllipticCurvePublicKey):
        return [key]
    return []
