"""Encryption at rest: the forms on disk, keys that change, and configurations that are refused."""

import base64
import datetime as dt
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import yaml

from drachma import errors, store
from drachma.process import encryption
from drachma.store import online

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
SECRET = store.Key("secrets", "default", "token")
CONFIG_MAP = store.Key("configmaps", "default", "settings")
DEPLOYMENT = store.Key("apps/deployments", "default", "web")
BODY = b'{"metadata":{"name":"token"},"data":{"password":"aHVudGVyMg=="}}'


def key(name: str, *, size: int = 32, fill: int = 1) -> dict[str, str]:
    return {"name": name, "secret": base64.b64encode(bytes([fill]) * size).decode()}


def configuration(
    path: pathlib.Path, *providers: Mapping[str, Any], resources: Sequence[str] = ("secrets",)
) -> pathlib.Path:
    document = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{"resources": list(resources), "providers": list(providers)}],
    }
    path.write_text(yaml.safe_dump(document))
    return path


GCM = {"aesgcm": {"keys": [key("key1")]}}
CBC = {"aescbc": {"keys": [key("key1")]}}
IDENTITY: dict[str, Any] = {"identity": {}}


@pytest.mark.parametrize("provider", [GCM, CBC], ids=["aesgcm", "aescbc"])
def test_bodies_are_stored_as_upstream_stores_them(tmp_path: pathlib.Path, provider: dict[str, Any]) -> None:
    cipher = encryption.load(configuration(tmp_path / "config", provider))
    (kind,) = provider
    sealed = cipher.seal(SECRET, BODY)
    assert sealed.startswith(f"k8s:enc:{kind}:v1:key1:".encode())
    assert b"password" not in sealed
    assert cipher.seal(SECRET, BODY) != sealed
    assert cipher.open(SECRET, sealed) == BODY


def test_a_body_does_not_pass_for_another_object(tmp_path: pathlib.Path) -> None:
    cipher = encryption.load(configuration(tmp_path / "config", GCM))
    other = SECRET._replace(name="other")
    with pytest.raises(errors.CipherError, match="secrets default/other: cannot be decrypted: the aesgcm key 'key1'"):
        cipher.open(other, cipher.seal(SECRET, BODY))


def test_the_first_provider_encrypts_and_all_decrypt(tmp_path: pathlib.Path) -> None:
    old = encryption.load(configuration(tmp_path / "old", GCM))
    both = {"aesgcm": {"keys": [key("key2", fill=2), key("key1")]}}
    new = encryption.load(configuration(tmp_path / "new", both, IDENTITY))
    assert new.open(SECRET, old.seal(SECRET, BODY)) == BODY
    assert new.open(SECRET, BODY) == BODY
    assert new.seal(SECRET, BODY).startswith(b"k8s:enc:aesgcm:v1:key2:")
    only = encryption.load(configuration(tmp_path / "only", {"aesgcm": {"keys": [key("key2", fill=2)]}}))
    with pytest.raises(errors.CipherError, match="no aesgcm provider has the key 'key1'"):
        only.open(SECRET, old.seal(SECRET, BODY))
    with pytest.raises(errors.CipherError, match=r"stored without encryption .* does not list for secrets; add"):
        only.open(SECRET, BODY)


@pytest.mark.parametrize(
    ("resources", "covered"),
    [
        pytest.param(["secrets"], [SECRET], id="one"),
        pytest.param(["secrets", "deployments.apps"], [SECRET, DEPLOYMENT], id="two"),
        pytest.param(["*.apps"], [DEPLOYMENT], id="a-group"),
        pytest.param(["*."], [SECRET, CONFIG_MAP], id="the-core-group"),
        pytest.param(["*.*"], [SECRET, CONFIG_MAP, DEPLOYMENT], id="everything"),
    ],
)
def test_which_resources_are_encrypted(tmp_path: pathlib.Path, resources: list[str], covered: list[store.Key]) -> None:
    cipher = encryption.load(configuration(tmp_path / "config", GCM, resources=resources))
    sealed = [each for each in (SECRET, CONFIG_MAP, DEPLOYMENT) if cipher.seal(each, BODY) != BODY]
    assert sealed == covered
    assert [cipher.covers(each.resource) for each in covered] == [True] * len(covered)


REFUSED: dict[str, tuple[dict[str, Any] | None, list[str], str]] = {
    "no-provider": (None, ["secrets"], r"resources\[0\].providers: Required value"),
    "empty-provider": ({}, ["secrets"], "provider does not contain any of the expected providers"),
    "two-providers": ({**GCM, **IDENTITY}, ["secrets"], "more than one provider specified in a single element"),
    "no-keys": ({"aesgcm": {"keys": []}}, ["secrets"], r"aesgcm.keys: Required value: at least one keys is required"),
    "short-key": (
        {"aesgcm": {"keys": [key("k", size=8)]}},
        ["secrets"],
        r'keys\[0\].secret: Invalid value: "REDACTED": secret is not of the expected length, got 8, expected one of',
    ),
    "no-base64": ({"aescbc": {"keys": [{"name": "k", "secret": "?"}]}}, ["secrets"], "secrets must be base64 encoded"),
    "no-name": ({"aescbc": {"keys": [key("")]}}, ["secrets"], "name is a mandatory field for a key"),
    "secretbox": ({"secretbox": {"keys": [key("k")]}}, ["secrets"], "secretbox: Unsupported value"),
    "kms-v1": (
        {"kms": {"apiVersion": "v1", "name": "k", "endpoint": "unix:///s"}},
        ["secrets"],
        r"kms.apiVersion: Invalid value: \"v1\": unsupported apiVersion",
    ),
    "kms-endpoint": (
        {"kms": {"apiVersion": "v2", "name": "k", "endpoint": "tcp://a"}},
        ["secrets"],
        'unsupported scheme "tcp" for KMS provider, only unix is supported',
    ),
    "kms-timeout": (
        {"kms": {"apiVersion": "v2", "name": "k", "endpoint": "unix:///s", "timeout": "0s"}},
        ["secrets"],
        "timeout should be a positive value",
    ),
    "star": (IDENTITY, ["*"], r"use '\*.' to encrypt all the resources from core API group"),
    "capital": (IDENTITY, ["Secrets"], "resource name should not contain capital letters"),
    "twice": (IDENTITY, ["secrets", "secrets"], "the same resource cannot be specified multiple times"),
    "overlap": (IDENTITY, ["secrets", "*.*"], "using overlapping resources"),
    "unknown-field": ({"aesgcm": {"keyz": []}}, ["secrets"], "unknown field `keyz`"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_configurations_that_are_refused(tmp_path: pathlib.Path, kind: str) -> None:
    provider, resources, want = REFUSED[kind]
    path = configuration(tmp_path / "config", *([] if provider is None else [provider]), resources=resources)
    with pytest.raises(errors.InvalidValueError, match=want) as caught:
        encryption.load(path)
    assert str(caught.value).startswith(f"encryption configuration {path}: ")


def test_files_that_are_no_configuration(tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.InvalidValueError, match="No such file"):
        encryption.load(tmp_path / "absent")
    (tmp_path / "other").write_text("apiVersion: v1\nkind: EncryptionConfiguration\n")
    with pytest.raises(errors.InvalidValueError, match=r"not EncryptionConfiguration of apiserver.config.k8s.io/v1"):
        encryption.load(tmp_path / "other")
    (tmp_path / "broken").write_text("{")
    with pytest.raises(errors.InvalidValueError, match="not YAML"):
        encryption.load(tmp_path / "broken")


def files(path: pathlib.Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.iterdir() if file.is_file())


async def test_no_file_of_a_store_holds_a_plain_secret(tmp_path: pathlib.Path) -> None:
    cipher = encryption.load(configuration(tmp_path / "config", GCM))
    data = tmp_path / "data"
    async with await store.SqliteStore.open(data, seal=cipher) as objects:
        await objects.create(SECRET, store.fixed(BODY))
        await objects.create(CONFIG_MAP, store.fixed(b'{"plain":1}'))
        held = objects.get(SECRET)
        assert held is not None
        assert held.data == BODY
        await online.write(objects, tmp_path / "backup", now=NOW)
        for content in (files(data), (tmp_path / "backup").read_bytes()):
            assert b"aHVudGVyMg" not in content
            assert b'"plain"' in content
    assert b"aHVudGVyMg" not in files(data)
    async with await store.SqliteStore.open(data, seal=cipher) as objects:
        assert [item.data for item in objects.list("secrets").records] == [BODY]
    with pytest.raises(
        errors.CipherError, match=r"secrets default/token: encrypted \(aesgcm:v1:key1\), and no provider"
    ):
        await store.SqliteStore.open(data)


async def test_rewriting_leaves_nothing_that_needs_the_old_key(tmp_path: pathlib.Path) -> None:
    data = tmp_path / "data"
    async with await store.SqliteStore.open(data) as objects:
        await objects.create(SECRET, store.fixed(BODY))
        await objects.create(CONFIG_MAP, store.fixed(b"{}"))
    cipher = encryption.load(configuration(tmp_path / "config", GCM, IDENTITY))
    async with await store.SqliteStore.open(data, seal=cipher) as objects:
        assert await online.rewrite(objects) == 1
        assert objects.revision == 4
    assert b"aHVudGVyMg" not in (data / "drachma.db").read_bytes()
    only = encryption.load(configuration(tmp_path / "only", GCM))
    async with await store.SqliteStore.open(data, seal=only) as objects:
        held = objects.get(SECRET)
        assert held is not None
        assert held.value["data"] == {"password": "aHVudGVyMg=="}
