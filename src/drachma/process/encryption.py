"""Encryption at rest: which provider encrypts the objects of which resource.

The first entry of the configuration that names a resource counts for it. Its first provider encrypts, and all of its
providers decrypt, so that all objects stay readable while keys are rotated.
"""

import functools
import pathlib
from collections.abc import Callable, Sequence
from typing import Final

from drachma import errors
from drachma.process import encryptionconfig, encryptionproviders, kmsprovider
from drachma.store import cipher, record


class Rule:
    """Resources, and the providers of their objects."""

    def __init__(self, resources: Sequence[str], providers: Sequence[encryptionproviders.Provider]) -> None:
        self._matches = [_matcher(name) for name in resources]
        self.providers: Final = providers

    def matches(self, resource: str) -> bool:
        return any(match(resource) for match in self._matches)


class Encryption:
    """A cipher of a store that follows a configuration."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._rule = functools.lru_cache(maxsize=1024)(self._find_rule)

    def covers(self, resource: str) -> bool:
        return self._rule(resource) is not None

    def seal(self, key: record.Key, data: bytes) -> bytes:
        rule = self._rule(key.resource)
        if rule is None:
            return data
        try:
            return rule.providers[0].encrypt(data, path=_path(key))
        except errors.CipherError as error:
            raise errors.CipherError(f"{key}: cannot be encrypted: {error}") from error

    def open(self, key: record.Key, data: bytes) -> bytes:
        rule = self._rule(key.resource)
        if rule is None:
            return _PLAIN.open(key, data)
        for provider in rule.providers:
            if provider.recognises(data):
                try:
                    return provider.decrypt(data, path=_path(key))
                except errors.CipherError as error:
                    raise errors.CipherError(f"{key}: cannot be decrypted: {error}") from error
        form = "encrypted by a provider" if data.startswith(cipher.PREFIX) else "stored without encryption"
        raise errors.CipherError(
            f"{key}: {form} that the encryption configuration does not list for {key.resource}; "
            "add the provider (identity for objects without encryption) after the first one"
        )

    def refresh(self) -> None:
        """Take over keys of plugins that have changed. Raises errors.CipherError."""
        for rule in self._rules:
            for provider in rule.providers[:1]:
                provider.refresh()

    def _find_rule(self, resource: str) -> Rule | None:
        return next((rule for rule in self._rules if rule.matches(resource)), None)


_PLAIN: Final = cipher.Plain()


def load(path: pathlib.Path) -> Encryption:
    """Return the cipher of a configuration file, after its plugins have answered.

    Raises:
        errors.InvalidValueError: the file cannot be read, or breaks rules.
        errors.CipherError: a plugin does not answer.
    """
    form = encryptionconfig.read(path)
    loaded = Encryption([Rule(each.resources, [_provider(one) for one in each.providers]) for each in form.resources])
    loaded.refresh()
    return loaded


def _provider(form: encryptionconfig.ProviderForm) -> encryptionproviders.Provider:
    if form.aesgcm is not None:
        return encryptionproviders.AesGcm(_keys(form.aesgcm))
    if form.aescbc is not None:
        return encryptionproviders.AesCbc(_keys(form.aescbc))
    if form.kms is not None:
        return kmsprovider.Kms(form.kms.name, endpoint=form.kms.endpoint, seconds=form.kms.seconds)
    return encryptionproviders.Identity()


def _keys(form: encryptionconfig.KeysForm) -> list[encryptionproviders.Key]:
    return [encryptionproviders.Key(key.name, encryptionconfig.decode_secret(key)) for key in form.keys]


def _path(key: record.Key) -> bytes:
    """Return the path that binds a body to its object, in the form of upstream's etcd keys."""
    return "/".join(("/registry", key.resource, *filter(None, (key.namespace,)), key.name)).encode()


def _matcher(name: str) -> Callable[[str], bool]:
    """Return a test on resources of the store for a name such as ``secrets``, ``*.apps``, ``*.`` or ``*.*``."""
    resource, _, group = name.partition(".")
    if (resource, group) == ("*", "*"):
        return lambda _: True
    if resource == "*":
        return lambda stored: (stored.rpartition("/")[0]) == group
    return f"{group}/{resource}".lstrip("/").__eq__
