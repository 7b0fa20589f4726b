"""Credential plugins: programs named in a kubeconfig that print a token or a client certificate.

The protocol is ``client.authentication.k8s.io`` v1 and v1beta1. The program gets its input in ``KUBERNETES_EXEC_INFO``
and prints an ExecCredential on its standard output. It runs without a terminal. An ``errors.AccessError`` names the
program and its failure; of its output the message contains standard error only.
"""

import asyncio
import base64
import contextlib
import datetime as dt
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.api import meta
from drachma.client import access

_SHOWN: Final = 500


class Credential(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Output of a plugin: a token, a certificate with its key, or both, possibly with an expiry."""

    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: meta.Time | None = None

    @property
    def key_pair(self) -> access.KeyPair | None:
        if not self.client_certificate_data:
            return None
        return access.KeyPair(self.client_certificate_data.encode(), self.client_key_data.encode())

    def is_expired(self, now: dt.datetime) -> bool:
        return self.expiration_timestamp is not None and now >= self.expiration_timestamp


class _ExecCredential(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    kind: str = ""
    api_version: str = ""
    status: Credential | None = None


_decoder = msgspec.json.Decoder(_ExecCredential)


async def run(plugin: access.Plugin, settings: access.Access, *, environment: Mapping[str, str]) -> Credential:
    """Run the program once and decode its output."""
    variables = {**environment, **plugin.environment, "KUBERNETES_EXEC_INFO": _information(plugin, settings)}
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.arguments,
            env=variables,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        hint = f"; {plugin.install_hint.strip()}" if plugin.install_hint else ""
        raise _failure(plugin, settings, f"cannot be run: {error.strerror}{hint}") from None
    try:
        output, complaint = await process.communicate()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode:
        error_output = " ".join(complaint.decode(errors="replace").split())[:_SHOWN]
        problem = f"ended with exit code {process.returncode}" + (f": {error_output}" if error_output else "")
        raise _failure(plugin, settings, problem)
    return _read(output, plugin, settings)


def _information(plugin: access.Plugin, settings: access.Access) -> str:
    spec: dict[str, Any] = {"interactive": False}
    if plugin.wants_cluster:
        authority = settings.certificate_authority
        cluster = {
            "server": settings.server,
            "tls-server-name": settings.tls_server_name,
            "insecure-skip-tls-verify": settings.skips_verification,
            "certificate-authority-data": base64.b64encode(authority).decode() if authority else "",
            "proxy-url": settings.proxy,
        }
        spec["cluster"] = {field: value for field, value in cluster.items() if value}
    return msgspec.json.encode({"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec}).decode()


def _read(output: bytes, plugin: access.Plugin, settings: access.Access) -> Credential:
    try:
        answer = _decoder.decode(output)
    except msgspec.DecodeError as error:
        raise _failure(plugin, settings, f"did not print an ExecCredential: {error}") from None
    if answer.kind != "ExecCredential" or answer.api_version != plugin.api_version:
        actual = f"{answer.kind or 'no kind'} of {answer.api_version or 'no apiVersion'}"
        raise _failure(plugin, settings, f"expected ExecCredential of {plugin.api_version}, found {actual}")
    credential = answer.status
    if credential is None or not (credential.token or credential.client_certificate_data):
        raise _failure(plugin, settings, "status: has neither token nor clientCertificateData")
    if bool(credential.client_certificate_data) != bool(credential.client_key_data):
        raise _failure(plugin, settings, "status: clientCertificateData and clientKeyData must be set together")
    return credential


def _failure(plugin: access.Plugin, settings: access.Access, problem: str) -> errors.AccessError:
    return errors.AccessError(f"{settings.source}: credential plugin {plugin.command}: {problem}")
