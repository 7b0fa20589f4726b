"""Keys from a plugin: one call for a seed, none for a write, and a new seed when the plugin's key changes."""

import concurrent.futures
import os
import pathlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from cryptography.hazmat.primitives.ciphers import aead

from drachma import errors
from drachma.process import encryption, kmsprovider
from tests.unit.process.test_encryption import BODY, SECRET, configuration


class FakePlugin:
    """A key management service with keys in memory."""

    def __init__(self) -> None:
        self.keys = {"kek-1": aead.AESGCM(bytes(32))}
        self.current = "kek-1"
        self.healthz = "ok"
        self.calls: Counter[str] = Counter()

    def rotate(self) -> None:
        self.current = f"kek-{len(self.keys) + 1}"
        self.keys[self.current] = aead.AESGCM(os.urandom(32))

    def status(self, _request: Any, _context: Any) -> Any:
        self.calls["Status"] += 1
        return kmsprovider.PLUGIN.StatusResponse(version="v2", healthz=self.healthz, key_id=self.current)

    def encrypt(self, request: Any, _context: Any) -> Any:
        self.calls["Encrypt"] += 1
        nonce = os.urandom(12)
        return kmsprovider.PLUGIN.EncryptResponse(
            ciphertext=nonce + self.keys[self.current].encrypt(nonce, request.plaintext, None),
            key_id=self.current,
            annotations={"plugin.example.com": b"1"},
        )

    def decrypt(self, request: Any, _context: Any) -> Any:
        self.calls["Decrypt"] += 1
        assert dict(request.annotations) == {"plugin.example.com": b"1"}
        key = self.keys[request.key_id]
        return kmsprovider.PLUGIN.DecryptResponse(
            plaintext=key.decrypt(request.ciphertext[:12], request.ciphertext[12:], None)
        )

    def serve(self, path: pathlib.Path) -> grpc.Server:
        server = grpc.server(concurrent.futures.ThreadPoolExecutor(1))
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(
                getattr(self, name.lower()),
                request_deserializer=getattr(kmsprovider.PLUGIN, f"{name}Request").FromString,
                response_serializer=getattr(kmsprovider.PLUGIN, f"{name}Response").SerializeToString,
            )
            for name in ("Status", "Encrypt", "Decrypt")
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(kmsprovider.SERVICE, handlers),))
        server.add_insecure_port(f"unix:{path}")
        server.start()
        return server


@pytest.fixture
def plugin(tmp_path: pathlib.Path) -> Iterator[FakePlugin]:
    made = FakePlugin()
    server = made.serve(tmp_path / "kms.sock")
    yield made
    server.stop(None).wait()


def load(tmp_path: pathlib.Path) -> encryption.Encryption:
    kms = {"apiVersion": "v2", "name": "vault", "endpoint": f"unix://{tmp_path}/kms.sock", "timeout": "5s"}
    return encryption.load(configuration(tmp_path / "config", {"kms": kms}))


def test_writes_do_not_ask_the_plugin(tmp_path: pathlib.Path, plugin: FakePlugin) -> None:
    cipher = load(tmp_path)
    sealed = [cipher.seal(SECRET, BODY) for _ in range(5)]
    assert len(set(sealed)) == 5
    assert all(each.startswith(b"k8s:enc:kms:v2:vault:") for each in sealed)
    assert [cipher.open(SECRET, each) for each in sealed] == [BODY] * 5
    assert plugin.calls == {"Status": 1, "Encrypt": 1}


def test_a_restart_asks_once_for_each_seed(tmp_path: pathlib.Path, plugin: FakePlugin) -> None:
    sealed = [load(tmp_path).seal(SECRET, BODY) for _ in range(2)]
    plugin.calls.clear()
    cipher = load(tmp_path)
    assert [cipher.open(SECRET, each) for each in sealed * 3] == [BODY] * 6
    assert plugin.calls["Decrypt"] == 2


def test_a_changed_key_is_taken_over(tmp_path: pathlib.Path, plugin: FakePlugin) -> None:
    cipher = load(tmp_path)
    before = cipher.seal(SECRET, BODY)
    cipher.refresh()
    assert plugin.calls["Encrypt"] == 1
    plugin.rotate()
    cipher.refresh()
    after = cipher.seal(SECRET, BODY)
    assert b"kek-1" in before
    assert b"kek-2" in after
    assert cipher.open(SECRET, before) == cipher.open(SECRET, after) == BODY


def test_a_plugin_that_is_not_ready_keeps_the_server_from_starting(tmp_path: pathlib.Path, plugin: FakePlugin) -> None:
    plugin.healthz = "sealed"
    with pytest.raises(errors.CipherError, match=r"kms provider 'vault': the plugin is not ready: .*healthz 'sealed'"):
        load(tmp_path)


def test_a_plugin_that_is_away_is_named(tmp_path: pathlib.Path) -> None:
    kms = {"apiVersion": "v2", "name": "vault", "endpoint": f"unix://{tmp_path}/absent.sock", "timeout": "100ms"}
    with pytest.raises(errors.CipherError, match="kms provider 'vault': Status failed: "):
        encryption.load(configuration(tmp_path / "config", {"kms": kms}))


def test_a_changed_body_is_refused(tmp_path: pathlib.Path, plugin: FakePlugin) -> None:
    cipher = load(tmp_path)
    sealed = bytearray(cipher.seal(SECRET, BODY))
    sealed[60] ^= 0xFF
    with pytest.raises(errors.CipherError, match="secrets default/token: cannot be decrypted: kms provider 'vault'"):
        cipher.open(SECRET, bytes(sealed))
