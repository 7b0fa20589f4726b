"""A server process whose files are damaged, backed up and restored, as an operator sees it."""

import base64
import pathlib
import subprocess
import threading

import pytest
import yaml

from tests.scenarios import processes, wire
from tests.unit.server import client

SECRETS = "/api/v1/namespaces/default/secrets"
PASSWORD = "correct-horse-battery"


def drachma(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*processes.DRACHMA, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=120
    )


def names(server: processes.Process) -> list[str]:
    with wire.Wire(server) as admin:
        items = admin.call("GET", client.CLAIMS).body["items"]
    return [item["metadata"]["name"] for item in items]


def test_a_server_restores_repairs_and_never_loses_in_silence(tmp_path: pathlib.Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    want = [f"c{number:02}" for number in range(20)]
    with processes.running(data) as server:
        with wire.Wire(server) as admin:
            for name in want:
                assert admin.call("POST", client.CLAIMS, client.claim(name)).code == 201
        server.kill()
    # The write-ahead log is damaged in its middle: the redo log has every write.
    log = data / "drachma.db-wal"
    whole = bytearray(log.read_bytes())
    whole[len(whole) // 2] ^= 0xFF
    log.write_bytes(whole)
    with processes.running(data) as server:
        assert names(server) == want
        server.kill()
    # Both are gone: the server refuses, and says how to go on.
    (data / "drachma.redo").unlink()
    with pytest.raises(
        RuntimeError, match=r"drachma.redo: missing, so acknowledged writes may be missing as well.*repair"
    ):
        processes.start(data)
    repaired = drachma("store", "repair", "--data", data)
    assert repaired.returncode == 0, repaired.stderr
    assert "last acknowledged revision: unknown" in repaired.stdout
    with processes.running(data) as server, wire.Wire(server) as admin:
        assert names(server) == want
        stale = admin.call("GET", f"{client.CLAIMS}?watch=1&resourceVersion=10&timeoutSeconds=1").body
        assert stale["object"]["code"] == 410


def test_a_backup_while_clients_write_and_a_restore_with_encrypted_secrets(tmp_path: pathlib.Path) -> None:
    data, restored = tmp_path / "data", tmp_path / "restored"
    data.mkdir()
    restored.mkdir()
    configuration = tmp_path / "encryption.yaml"
    provider = {"aesgcm": {"keys": [{"name": "key1", "secret": base64.b64encode(bytes(32)).decode()}]}}
    resources = [{"resources": ["secrets"], "providers": [provider, {"identity": {}}]}]
    document = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration", "resources": resources}
    configuration.write_text(yaml.safe_dump(document))
    options = ("--encryption-provider-config", str(configuration))
    with processes.running(data, options=options) as server, wire.Wire(server) as admin:
        secret = {"metadata": {"name": "login"}, "stringData": {"password": PASSWORD}}
        assert admin.call("POST", SECRETS, secret).code == 201
        is_over = threading.Event()

        def write() -> None:
            with wire.Wire(server) as writer:
                number = 0
                while not is_over.is_set():
                    assert writer.call("POST", client.CLAIMS, client.claim(f"c{number:05}")).code == 201
                    number += 1

        thread = threading.Thread(target=write)
        thread.start()
        try:
            backup = drachma("store", "backup", "--data", data, "--to", tmp_path / "backup")
        finally:
            is_over.set()
            thread.join()
        assert backup.returncode == 0, backup.stderr
        written = names(server)
        server.kill()
    plain = base64.b64encode(PASSWORD.encode())
    for file in (*data.glob("drachma.*"), tmp_path / "backup"):
        if file.is_file():
            assert plain not in file.read_bytes(), file
    assert drachma("store", "restore", "--from", tmp_path / "backup", "--data", restored).returncode == 0
    with processes.running(restored, options=options) as server, wire.Wire(server) as admin:
        assert admin.call("GET", f"{SECRETS}/login").body["data"]["password"] == plain.decode()
        saved = names(server)
        # What clients wrote up to some moment, without gaps.
        assert saved == written[: len(saved)]
