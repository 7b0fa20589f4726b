"""Credential plugins: programs named in a kubeconfig that print a token or a client certificate.

The protocol is that of ``client.authentication.k8s.io`` v1 and v1beta1: what the program may know comes in
``KUBERNETES_EXEC_INFO``, what it gives is an ExecCredential on its standard output. It is run without a terminal. An
``errors.AccessError`` says which program failed and how; nothing of its output is in the message but standard error.
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
    """What a plugin gives: a token, a certificate with its key, or both, perhaps for some time only."""

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


async def run(plugin: access.Plugin, reached: access.Access, *, environment: Mapping[str, str]) -> Credential:
    """Runs the program once and reads what it prints."""
    variables = {**environment, **plugin.environment, "KUBERNETES_EXEC_INFO": _information(plugin, reached)}
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
        raise _failure(plugin, reached, f"cannot be run: {error.strerror}{hint}") from None
    try:
        output, complaint = await process.communicate()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode:
        said = " ".join(complaint.decode(errors="replace").split())[:_SHOWN]
        problem = f"ended with exit code {process.returncode}" + (f": {said}" if said else "")
        raise _failure(plugin, reached, problem)
    return _read(output, plugin, reached)


def _information(plugin: access.Plugin, reached: access.Access) -> str:
    spec: dict[str, Any] = {"interactive": False}
    if plugin.wants_cluster:
        authority = reached.certificate_authority
        cluster = {
            "server": reached.server,
            "tls-server-name": reached.tls_server_name,
            "insecure-skip-tls-verify": reached.skips_verification,
            "certificate-authority-data": base64.b64encode(authority).decode() if authority else "",
            "proxy-url": reached.proxy,
        }
        spec["cluster"] = {field: value for field, value in cluster.items() if value}
    return msgspec.json.encode({"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec}).decode()


def _read(output: bytes, plugin: access.Plugin, reached: access.Access) -> Credential:
    try:
        answer = _decoder.decode(output)
    except msgspec.DecodeError as error:
        raise _failure(plugin, reached, f"did not print an ExecCredential: {error}") from None
    if answer.kind != "ExecCredential" or answer.api_version != plugin.api_version:
        found = f"{answer.kind or 'no kind'} of {answer.api_version or 'no apiVersion'}"
        raise _failure(plugin, reached, f"expected ExecCredential of {plugin.api_version}, found {found}")
    given = answer.status
    if given is None or not (given.token or given.client_certificate_data):
        raise _failure(plugin, reached, "status: has neither token nor clientCertificateData")
    if bool(given.client_certificate_data) != bool(given.client_key_data):
        raise _failure(plugin, reached, "status: clientCertificateData and clientKeyData must be set together")
    return given


def _failure(plugin: access.Plugin, reached: access.Access, problem: str) -> errors.AccessError:
    return errors.AccessError(f"{reached.source}: credential plugin {plugin.command}: {problem}")
