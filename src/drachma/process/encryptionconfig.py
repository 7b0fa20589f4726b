"""The configuration of encryption at rest: upstream's EncryptionConfiguration, read and validated with its messages."""

import base64
import binascii
import pathlib
import urllib.parse
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import yaml

from drachma import errors
from drachma.cel.runtime import instants

_KIND: Final = "EncryptionConfiguration"
_VERSION: Final = "apiserver.config.k8s.io/v1"
_KEY_SIZES: Final = (16, 24, 32)
_INTERNAL: Final = frozenset({"apiserveripinfo", "serviceipallocations", "servicenodeportallocations"})
_DEFAULT_TIMEOUT: Final = "3s"


class KeyForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A key by name; the secret is base64."""

    name: str = ""
    secret: str = ""


class KeysForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    keys: list[KeyForm] = []


class KmsForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    api_version: str = "v1"
    name: str = ""
    endpoint: str = ""
    timeout: str = _DEFAULT_TIMEOUT
    cachesize: int | None = None

    @property
    def seconds(self) -> float:
        return _seconds(self.timeout) or 0.0


class IdentityForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing to configure."""


class ProviderForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Exactly one provider."""

    aesgcm: KeysForm | None = None
    aescbc: KeysForm | None = None
    secretbox: KeysForm | None = None
    kms: KmsForm | None = None
    identity: IdentityForm | None = None


class ResourceForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Resources, and their providers in order: the first one encrypts, all of them decrypt."""

    resources: list[str] = []
    providers: list[ProviderForm] = []


class ConfigurationForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    resources: list[ResourceForm] = []


def read(path: pathlib.Path) -> ConfigurationForm:
    """Read and validate a configuration.

    Raises:
        errors.InvalidValueError: it cannot be read, or breaks rules; names the file, the field and the rule.
    """
    try:
        form = msgspec.convert(yaml.safe_load(path.read_text("utf-8")), ConfigurationForm)
    except OSError as error:
        raise errors.InvalidValueError(f"encryption configuration {path}: {error.strerror}") from error
    except (UnicodeError, yaml.YAMLError) as error:
        raise errors.InvalidValueError(f"encryption configuration {path}: not YAML: {error}") from error
    except msgspec.ValidationError as error:
        raise errors.InvalidValueError(f"encryption configuration {path}: {error}") from error
    if (form.kind, form.api_version) != (_KIND, _VERSION):
        raise errors.InvalidValueError(
            f"encryption configuration {path}: kind {form.kind!r} of {form.api_version!r}, not {_KIND} of {_VERSION}"
        )
    problems = list(_problems(form))
    if problems:
        raise errors.InvalidValueError(f"encryption configuration {path}: {'; '.join(problems)}")
    return form


def decode_secret(key: KeyForm) -> bytes:
    return base64.b64decode(key.secret, validate=True)


def _problems(form: ConfigurationForm) -> Iterator[str]:
    if not form.resources:
        yield "resources: Required value: at least one resources is required"
    names: set[str] = set()
    for index, each in enumerate(form.resources):
        place = f"resources[{index}]"
        if not each.resources:
            yield f"{place}.resources: Required value: at least one {place}.resources is required"
        yield from _resource_problems(each.resources, f"{place}.resources")
        if not each.providers:
            yield f"{place}.providers: Required value: at least one {place}.providers is required"
        for number, provider in enumerate(each.providers):
            yield from _provider_problems(provider, f"{place}.providers[{number}]", names)


def _resource_problems(resources: list[str], place: str) -> Iterator[str]:
    pairs = [_split(each) for each in resources]
    if len(set(pairs)) < len(pairs):
        yield _invalid(place, resources, "the same resource cannot be specified multiple times")
    if any(_overlap(one, other) for one in pairs for other in pairs if one != other):
        yield _invalid(
            place,
            resources,
            "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they "
            "will be masked",
        )
    for index, name in enumerate(resources):
        resource, group = _split(name)
        rule = ""
        if name.lower() != name:
            rule = "resource name should not contain capital letters"
        elif name == "*":
            rule = "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"
        elif name in _INTERNAL:
            rule = "resources which do not have REST API/s cannot be encrypted"
        elif group == "events.k8s.io":
            rule = (
                "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in "
                "the config file"
            )
        elif group == "extensions":
            rule = "'extensions' group has been removed and cannot be used for encryption"
        elif group == "*" and resource != "*":
            rule = "encrypting the same resource across groups is not supported"
        if rule:
            yield _invalid(f"{place}[{index}]", name, rule)


def _overlap(one: tuple[str, str], other: tuple[str, str]) -> bool:
    return ("*", "*") in (one, other) or (one[1] == other[1] and "*" in (one[0], other[0]))


def _provider_problems(provider: ProviderForm, place: str, names: set[str]) -> Iterator[str]:
    configured = [field for field in provider.__struct_fields__ if getattr(provider, field) is not None]
    if not configured:
        yield (
            f"{place}: Invalid value: provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, "
            "Secretbox, Identity"
        )
    elif len(configured) > 1:
        yield (
            f"{place}: Invalid value: more than one provider specified in a single element, should split into "
            "different list elements"
        )
    elif provider.kms is not None:
        yield from _kms_problems(provider.kms, f"{place}.kms", names)
    elif provider.secretbox is not None:
        # Differs from upstream: the cryptography package has no XSalsa20.
        yield f"{place}.secretbox: Unsupported value: secretbox: supported values: kms, aesgcm, aescbc, identity"
    elif provider.identity is None:
        (name,) = configured
        yield from _key_problems(getattr(provider, name).keys, f"{place}.{name}.keys")


def _key_problems(keys: list[KeyForm], place: str) -> Iterator[str]:
    if not keys:
        yield f"{place}: Required value: at least one keys is required"
    for index, key in enumerate(keys):
        if not key.name:
            yield f"{place}[{index}].name: Required value: name is a mandatory field for a key"
        elif ":" in key.name:
            yield _invalid(f"{place}[{index}].name", key.name, "must not contain ':'")
        secret = f"{place}[{index}].secret"
        if not key.secret:
            yield f"{secret}: Required value: secret is a mandatory field for a key"
            continue
        try:
            size = len(decode_secret(key))
        except binascii.Error:
            yield _invalid(secret, "REDACTED", "secrets must be base64 encoded")
            continue
        if size not in _KEY_SIZES:
            sizes = " ".join(map(str, _KEY_SIZES))
            rule = f"secret is not of the expected length, got {size}, expected one of [{sizes}]"
            yield _invalid(secret, "REDACTED", rule)


def _kms_problems(kms: KmsForm, place: str, names: set[str]) -> Iterator[str]:
    if kms.api_version != "v2":
        # Differs from upstream, which has version 1 behind a gate that is off.
        yield _invalid(f"{place}.apiVersion", kms.api_version, "unsupported apiVersion for KMS provider, only v2 is")
    if not kms.name:
        yield f"{place}.name: Required value: name is a mandatory field for a provider"
    elif ":" in kms.name:
        yield _invalid(f"{place}.name", kms.name, f"invalid KMS provider name {kms.name}, must not contain ':'")
    if kms.name in names:
        yield _invalid(f"{place}.name", kms.name, f"duplicate KMS provider name {kms.name}, names must be unique")
    names.add(kms.name)
    seconds = _seconds(kms.timeout)
    if seconds is None or seconds <= 0:
        yield _invalid(f"{place}.timeout", kms.timeout, "timeout should be a positive value")
    if not kms.endpoint:
        yield _invalid(f"{place}.endpoint", "", "endpoint is a mandatory field for a kms")
    elif (scheme := urllib.parse.urlsplit(kms.endpoint).scheme) != "unix":
        rule = f'unsupported scheme "{scheme}" for KMS provider, only unix is supported'
        yield _invalid(f"{place}.endpoint", kms.endpoint, rule)
    if kms.cachesize is not None:
        yield _invalid(f"{place}.cachesize", kms.cachesize, "cachesize is not supported in v2")


def _split(name: str) -> tuple[str, str]:
    """Return resource and group of a name such as ``deployments.apps``."""
    resource, _, group = name.partition(".")
    return resource, group


def _invalid(place: str, value: Any, rule: str) -> str:
    return f"{place}: Invalid value: {msgspec.json.encode(value).decode()}: {rule}"


def _seconds(text: str) -> float | None:
    duration = instants.parse_duration(text)
    return None if duration is None else duration.nanos / 10**9
