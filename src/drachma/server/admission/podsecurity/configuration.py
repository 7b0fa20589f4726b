"""Configuration of the plugin: the policy of namespaces without labels, and requests that are not checked."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.server.admission.podsecurity import policies
from drachma.server.admission.podsecurity.policies import LevelVersion, Policy
from drachma.validation import fielderror
from drachma.validation.path import Path
from drachma.values import names

GROUP: Final = "pod-security.admission.config.k8s.io"
KIND: Final = "PodSecurityConfiguration"
VERSIONS: Final = ("v1", "v1beta1", "v1alpha1")

_DEFAULTS_PATH: Final = Path("defaults")
_EXEMPTIONS_PATH: Final = Path("exemptions")


class Exemptions(msgspec.Struct, frozen=True, kw_only=True):
    """Users, namespaces and runtime classes that are not checked."""

    usernames: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()
    runtime_classes: frozenset[str] = frozenset()


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """Configuration of Pod Security admission. By default, nothing is enforced without labels, and nothing exempt."""

    defaults: Policy = Policy()
    exemptions: Exemptions = Exemptions()


STANDARD: Final = Configuration()


class _Defaults(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    enforce: str = ""
    enforce_version: str = ""
    audit: str = ""
    audit_version: str = ""
    warn: str = ""
    warn_version: str = ""


class _Exemptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    usernames: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    runtime_classes: tuple[str, ...] = ()


class _Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    api_version: str
    kind: str
    defaults: _Defaults = _Defaults()
    exemptions: _Exemptions = _Exemptions()


def read(document: Any) -> Configuration:
    """Return the configuration that a PodSecurityConfiguration describes.

    Raises:
        errors.DecodeError: the document is of another kind, or has fields of another type or name.
        errors.InvalidValueError: values are not valid; the message names all of them.
    """
    try:
        decoded = msgspec.convert(document, _Document)
    except msgspec.ValidationError as error:
        raise errors.DecodeError(f"{KIND}: {error}") from None
    group, _, version = decoded.api_version.rpartition("/")
    if (group, decoded.kind) != (GROUP, KIND) or version not in VERSIONS:
        actual = f"{decoded.kind} of {decoded.api_version}"
        raise errors.DecodeError(f"{KIND}: want {KIND} of {GROUP}/{VERSIONS[0]}, got {actual}")
    problems: list[fielderror.FieldError] = []
    standards = decoded.defaults
    defaults = Policy(
        _read_standard("enforce", standards.enforce, standards.enforce_version, problems=problems),
        _read_standard("audit", standards.audit, standards.audit_version, problems=problems),
        _read_standard("warn", standards.warn, standards.warn_version, problems=problems),
    )
    exempt = decoded.exemptions
    exemptions = Exemptions(
        usernames=_read_set("usernames", exempt.usernames, _check_username, problems=problems),
        namespaces=_read_set("namespaces", exempt.namespaces, names.dns1123_label, problems=problems),
        runtime_classes=_read_set("runtimeClasses", exempt.runtime_classes, names.dns1123_subdomain, problems=problems),
    )
    if problems:
        raise errors.InvalidValueError(f"{KIND}: {'; '.join(map(str, problems))}")
    return Configuration(defaults=defaults, exemptions=exemptions)


def _read_standard(mode: str, level: str, version: str, *, problems: list[fielderror.FieldError]) -> LevelVersion:
    """Return the standard of a mode, and collect errors; an empty text stands for the default."""
    parsed_level = policies.parse_level(level) if level else policies.PRIVILEGED.level
    parsed_version = policies.parse_version(version) if version else policies.LATEST
    if parsed_level is None:
        problems.append(fielderror.invalid(_DEFAULTS_PATH.child(mode), level, policies.LEVEL_RULE))
    if parsed_version is None:
        problems.append(fielderror.invalid(_DEFAULTS_PATH.child(f"{mode}-version"), version, policies.VERSION_RULE))
    if parsed_level is None or parsed_version is None:
        return policies.PRIVILEGED
    return LevelVersion(parsed_level, parsed_version)


def _read_set(
    field: str, texts: Sequence[str], check: Callable[[str], Sequence[str]], *, problems: list[fielderror.FieldError]
) -> frozenset[str]:
    """Return the texts of a list, and collect errors."""
    accepted: set[str] = set()
    for position, text in enumerate(texts):
        at = _EXEMPTIONS_PATH.child(field).item(position)
        details = check(text)
        if details:
            problems.append(fielderror.invalid(at, text, ", ".join(details)))
        elif text in accepted:
            problems.append(fielderror.duplicate(at, text))
        accepted.add(text)
    return frozenset(accepted)


def _check_username(text: str) -> Sequence[str]:
    return () if text else ("username must not be empty",)
