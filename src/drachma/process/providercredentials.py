"""Credentials of the service for cluster-autoscaler: TLS, with certificates of clients if there is an authority."""

from __future__ import annotations

import ipaddress
import pathlib

import grpc

from drachma import errors


def read_credentials(
    address: str, *, certificate: pathlib.Path | None, key: pathlib.Path | None, client_ca: pathlib.Path | None
) -> grpc.ServerCredentials | None:
    """Return the credentials for an address, or None for one of this machine without a certificate.

    Raises:
        errors.InvalidValueError: a file is absent or cannot be read, or clients without a certificate could reach the
            address from other machines. The service removes nodes, so it must know its clients.
    """
    host = address.rpartition(":")[0].strip("[]")
    is_local = host == "localhost" or _is_loopback(host)
    if not is_local and (certificate is None or key is None or client_ca is None):
        raise errors.InvalidValueError(
            f"--address: {address}: requires --certificate, --key and --client-ca; only loopback does not"
        )
    if certificate is None or key is None:
        if certificate is not None or key is not None or client_ca is not None:
            raise errors.InvalidValueError("--certificate and --key: both are required for TLS")
        return None
    pair = (_read(key), _read(certificate))
    if client_ca is None:
        return grpc.ssl_server_credentials([pair])
    return grpc.ssl_server_credentials([pair], root_certificates=_read(client_ca), require_client_auth=True)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _read(path: pathlib.Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise errors.InvalidValueError(f"{path}: {error.strerror}") from None
