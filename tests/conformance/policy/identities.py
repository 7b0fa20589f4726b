"""The people of the scenarios: tokens, certificates and service account tokens, made fresh for each run.

Names, groups and what is wrong with the bad ones are those that the recordings were made with.
"""

import base64
import datetime as dt
import ipaddress
import json
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

ISSUER = "https://kubernetes.default.svc.cluster.local"

_LOOPBACK = ipaddress.ip_address("127.0.0.1")
_DAY = dt.timedelta(days=1)
_YEARS = 20 * 365 * 24 * 3600
_SOME_UID = "6f0e1a2b-0000-4000-8000-0000000000{}"


class Person(NamedTuple):
    """What somebody shows: a token, or a certificate with its key."""

    token: str = ""
    certificate: pathlib.Path | None = None
    key: pathlib.Path | None = None


class Identities(NamedTuple):
    """The files for a server, and the people."""

    folder: pathlib.Path
    people: dict[str, Person]

    @property
    def options(self) -> tuple[str, ...]:
        """The server's options."""
        return (
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            f"--client-ca-file={self.folder / 'ca.crt'}",
            f"--service-account-key-file={self.folder / 'sa.key'}",
            f"--service-account-signing-key-file={self.folder / 'sa.key'}",
            f"--service-account-issuer={ISSUER}",
        )


class _Authority:
    """Signs certificates."""

    def __init__(self, folder: pathlib.Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = self._builder(self._name, self._key, until=_now() + 3650 * _DAY)
        self.certificate = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True).sign(
            self._key, hashes.SHA256()
        )

    def make(
        self,
        name: str,
        subject: Sequence[tuple[x509.ObjectIdentifier, str]],
        *,
        usage: x509.ObjectIdentifier,
        days: int = 3650,
    ) -> Person:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(
            x509.Name([x509.NameAttribute(*part) for part in subject]), key, until=_now() + days * _DAY
        )
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        builder = builder.add_extension(
            x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(_LOOPBACK)]), critical=False
        )
        certificate, secret = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        made = builder.sign(self._key, hashes.SHA256())
        certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        secret.write_bytes(_pem(key))
        return Person(certificate=certificate, key=secret)

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, until: dt.datetime
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(min(_now(), until) - _DAY)
            .not_valid_after(until)
        )


def make(folder: pathlib.Path) -> Identities:
    """All of them, with their files in a folder."""
    people = {name: Person(token=_token(name)) for name, _ in _users()}
    lines = [f'{_token(name)},{name},uid-{_short(name)},"{",".join(groups)}"' for name, groups in _users()]
    (folder / "tokens.csv").write_text("\n".join(lines) + "\n")
    own, other = _Authority(folder, "policy-ca"), _Authority(folder, "other-ca")
    (folder / "ca.crt").write_bytes(own.certificate.public_bytes(serialization.Encoding.PEM))
    group, name = NameOID.ORGANIZATION_NAME, NameOID.COMMON_NAME
    client, server = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH
    masters = (group, "system:masters")
    own.make("webhook", [(name, "webhook")], usage=server)
    people |= {
        "cert-admin": own.make("cert-admin", [masters, (name, "cert-admin")], usage=client),
        "cert-dev": own.make("cert-dev", [(group, "dev"), (group, "qa"), (name, "cert-dev")], usage=client),
        "cert-node": own.make("cert-node", [(group, "system:nodes"), (name, "system:node:cert-node")], usage=client),
        "cert-foreign": other.make("cert-foreign", [masters, (name, "cert-foreign")], usage=client),
        "cert-expired": own.make("cert-expired", [masters, (name, "cert-expired")], usage=client, days=-1),
        "cert-server-only": own.make("cert-server-only", [masters, (name, "cert-server-only")], usage=server),
    }
    key, foreign = (rsa.generate_private_key(65537, 2048) for _ in range(2))
    (folder / "sa.key").write_bytes(_pem(key))
    people |= {name: Person(token=token) for name, token in _bad_tokens(key, foreign).items()}
    return Identities(folder, people)


def _users() -> list[tuple[str, tuple[str, ...]]]:
    named = [
        ("admin", ("system:masters",)),
        ("alice", ("dev",)),
        ("bob", ("ops",)),
        ("carol", ("dev", "ops")),
        ("dave", ()),
        ("system:kube-scheduler", ()),
        ("system:kube-controller-manager", ()),
        ("system:node:", ("system:nodes",)),
        ("nodes-only", ("system:nodes",)),
        ("system:node:nogroup", ()),
    ]
    numbered = [(f"u{number:02}", (f"g{number:02}",)) for number in range(1, 61)]
    nodes = [(f"system:node:n{number:02}", ("system:nodes",)) for number in range(1, 61)]
    return [*named, *numbered, *nodes]


def _bad_tokens(key: rsa.RSAPrivateKey, foreign: rsa.RSAPrivateKey) -> dict[str, str]:
    now = int(_now().timestamp())
    good = {
        "aud": [ISSUER],
        "exp": now + _YEARS,
        "iat": now - 1_000_000,
        "nbf": now - 1_000_000,
        "iss": ISSUER,
        "jti": _SOME_UID.format("01"),
        **_account("default", "aa"),
    }
    return {
        "bad-token": "nonsense",
        "bad-jwt-foreign-key": jwt.encode(good, foreign, algorithm="RS256"),
        "bad-jwt-expired": jwt.encode({**good, "exp": now - 500_000}, key, algorithm="RS256"),
        "bad-jwt-wrong-uid": jwt.encode(good, key, algorithm="RS256"),
        "bad-jwt-audience": jwt.encode({**good, "aud": ["vault"]}, key, algorithm="RS256"),
        "bad-jwt-issuer": jwt.encode({**good, "iss": "https://elsewhere.example.com"}, key, algorithm="RS256"),
        "bad-jwt-not-yet": jwt.encode({**good, "nbf": now + _YEARS - 1}, key, algorithm="RS256"),
        "bad-jwt-none": _unsigned(good),
        "bad-jwt-no-sa": jwt.encode({**good, **_account("ghost", "ab")}, key, algorithm="RS256"),
    }


def _account(name: str, last: str) -> dict[str, Any]:
    account = {"name": name, "uid": _SOME_UID.format(last)}
    return {
        "sub": f"system:serviceaccount:default:{name}",
        "kubernetes.io": {"namespace": "default", "serviceaccount": account},
    }


def _unsigned(claims: dict[str, Any]) -> str:
    parts = ({"alg": "none"}, claims)
    return ".".join([*(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts), ""])


def _token(name: str) -> str:
    return f"token-{_short(name)}"


def _short(name: str) -> str:
    return name.replace(":", "-")


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC).replace(microsecond=0)


def _pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
