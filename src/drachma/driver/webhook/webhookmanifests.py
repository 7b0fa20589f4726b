"""Manifests of a webhook: its Deployment, Service and certificate, and the configuration that has it called.

It is called only for objects with parameters for its driver, and needs no permissions at all.
"""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
import urllib.parse
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from drachma import errors
from drachma.driver.driver import Driver
from drachma.driver.webhook import server

_PORT: Final = 8443
_DAYS: Final = 3650
_CLOCK_SKEW: Final = dt.timedelta(hours=1)
_FOLDER: Final = "/etc/webhook"
_RUN_AS: Final = 65532

Document = dict[str, Any]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a webhook; with ``url`` it runs there, and not in the cluster."""

    image: str
    namespace: str
    url: str = ""


def documents(driver: type[Driver], settings: Settings, *, now: dt.datetime) -> list[Document]:
    """Return all manifests, with a new certificate, in the order in which they are to be applied.

    Raises:
        errors.DriverError: the driver takes no parameters, or the URL is not one of https.
    """
    if driver.config is None:
        raise errors.DriverError(f"driver {driver.name}: takes no parameters, so that a webhook has nothing to check")
    name = f"{driver.name.replace('.', '-')}-webhook"
    host = f"{name}.{settings.namespace}.svc"
    if settings.url:
        parts = urllib.parse.urlsplit(settings.url)
        if parts.scheme != "https" or not parts.hostname:
            raise errors.DriverError(f"webhook URL {settings.url!r}: expected https://HOST:PORT")
        host = parts.hostname
    pair = make_certificate([host], now=now)
    secret = _object("Secret", "v1", name, settings.namespace)
    secret["type"] = "kubernetes.io/tls"
    secret["data"] = {server.CERTIFICATE: _base64(pair.certificate), server.KEY: _base64(pair.key)}
    in_cluster = [] if settings.url else list(_cluster_objects(name, settings))
    return [secret, *in_cluster, _configuration(driver, name, settings, pair.certificate)]


def _cluster_objects(name: str, settings: Settings) -> Iterator[Document]:
    account = _object("ServiceAccount", "v1", name, settings.namespace)
    account["automountServiceAccountToken"] = False
    yield account
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/component": "webhook"}
    service = _object("Service", "v1", name, settings.namespace)
    service["spec"] = {"selector": labels, "ports": [{"name": "https", "port": 443, "targetPort": "https"}]}
    yield service
    deployment = _object("Deployment", "apps/v1", name, settings.namespace)
    probe = {"httpGet": {"path": "/healthz", "port": "https", "scheme": "HTTPS"}, "periodSeconds": 10}
    container = {
        "name": "webhook",
        "image": settings.image,
        "args": ["webhook", f"--port={_PORT}", f"--cert-dir={_FOLDER}", "--log-format=json"],
        "ports": [{"name": "https", "containerPort": _PORT}],
        "readinessProbe": probe,
        "livenessProbe": probe,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": _RUN_AS,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [{"name": "certificate", "mountPath": _FOLDER, "readOnly": True}],
    }
    deployment["spec"] = {
        "replicas": 2,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {
                "serviceAccountName": name,
                "automountServiceAccountToken": False,
                "containers": [container],
                "volumes": [{"name": "certificate", "secret": {"secretName": name}}],
            },
        },
    }
    yield deployment


def _configuration(driver: type[Driver], name: str, settings: Settings, authority: bytes) -> Document:
    configuration = _object("ValidatingWebhookConfiguration", "admissionregistration.k8s.io/v1", name)
    client: Document = {"caBundle": _base64(authority)}
    if settings.url:
        client["url"] = settings.url.rstrip("/") + server.PATH
    else:
        client["service"] = {"name": name, "namespace": settings.namespace, "path": server.PATH, "port": 443}
    configuration["webhooks"] = [
        {
            "name": f"parameters.{driver.name}",
            "clientConfig": client,
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            # Other versions are converted to this one before the webhook is called.
            "matchPolicy": "Equivalent",
            "timeoutSeconds": 5,
            "rules": [
                {
                    "apiGroups": ["resource.k8s.io"],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["resourceclaims", "resourceclaimtemplates", "deviceclasses"],
                }
            ],
            "matchConditions": [{"name": "has-parameters", "expression": _condition(driver.name)}],
        }
    ]
    return configuration


def _condition(driver: str) -> str:
    """Return an expression that is true for objects with parameters for a driver."""
    paths = ("object.spec.?devices.?config", "object.spec.?spec.?devices.?config", "object.spec.?config")
    has_parameters = f"exists(entry, entry.?opaque.?driver.orValue('') == {driver!r})"
    return " || ".join(f"{path}.orValue([]).{has_parameters}" for path in paths)


def _object(kind: str, api: str, name: str, namespace: str = "") -> Document:
    metadata: Document = {"name": name, "labels": {"app.kubernetes.io/name": name}}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api, "kind": kind, "metadata": metadata}


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


class KeyPair(NamedTuple):
    """Certificate and private key (PEM)."""

    certificate: bytes
    key: bytes


def make_certificate(hosts: Sequence[str], *, now: dt.datetime, days: int = _DAYS) -> KeyPair:
    """Return a new key with a certificate for host names or addresses, which is its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0][:64])])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + dt.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return KeyPair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
