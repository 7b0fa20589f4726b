"""Policies of Pod Security: levels, versions, and the labels of a namespace that name them."""

import enum
import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeVar

from drachma.validation import fielderror
from drachma.validation.path import METADATA

PREFIX: Final = "pod-security.kubernetes.io/"
"""Prefix of the labels of namespaces, and of the annotations in the audit log."""

ENFORCE: Final = f"{PREFIX}enforce"
ENFORCE_VERSION: Final = f"{PREFIX}enforce-version"
AUDIT: Final = f"{PREFIX}audit"
AUDIT_VERSION: Final = f"{PREFIX}audit-version"
WARN: Final = f"{PREFIX}warn"
WARN_VERSION: Final = f"{PREFIX}warn-version"

_LABELS: Final = frozenset({ENFORCE, ENFORCE_VERSION, AUDIT, AUDIT_VERSION, WARN, WARN_VERSION})

LATEST: Final = 2**63
"""Minor version that stands for the latest one: newer than every version that a label can name."""

_LATEST_NAME: Final = "latest"
_MINOR: Final = re.compile(r"v1\.([0-9]|[1-9][0-9]{1,18})", re.ASCII)
_LABELS_PATH: Final = METADATA.child("labels")

_T = TypeVar("_T")


class Level(enum.IntEnum):
    """Level of the Pod Security Standards; a stricter level is greater."""

    PRIVILEGED = 0
    BASELINE = 1
    RESTRICTED = 2

    @property
    def label(self) -> str:
        """Value of the label that names the level."""
        return self.name.lower()


LEVEL_RULE: Final = f"must be one of {', '.join(level.label for level in Level)}"
VERSION_RULE: Final = 'must be "latest" or "v1.x"'

_LEVELS: Final = {level.label: level for level in Level}


class LevelVersion(NamedTuple):
    """Level of the standards as a minor version of Kubernetes defines it."""

    level: Level
    minor: int

    def __str__(self) -> str:
        return f"{self.level.label}:{_LATEST_NAME if self.minor == LATEST else f'v1.{self.minor}'}"

    def is_equivalent(self, other: "LevelVersion") -> bool:
        """Return True if both have the same effect: all versions of the privileged level do."""
        return self.level == other.level and (self.level == Level.PRIVILEGED or self.minor == other.minor)


PRIVILEGED: Final = LevelVersion(Level.PRIVILEGED, LATEST)


class Policy(NamedTuple):
    """Standards of a namespace: the first refuses pods, the second is for the audit log, the third warns clients."""

    enforce: LevelVersion = PRIVILEGED
    audit: LevelVersion = PRIVILEGED
    warn: LevelVersion = PRIVILEGED

    @property
    def is_privileged(self) -> bool:
        """True if no mode has a check to run."""
        return not (self.enforce.level or self.audit.level or self.warn.level)

    def is_equivalent(self, other: "Policy") -> bool:
        """Return True if all three modes have the same effect."""
        return all(own.is_equivalent(theirs) for own, theirs in zip(self, other, strict=True))


class LabelledPolicy(NamedTuple):
    """Policy that labels name, and an error for each label that names none."""

    policy: Policy
    errors: tuple[fielderror.FieldError, ...] = ()


def parse_level(text: str) -> Level | None:
    """Return the level of that name, or None if there is no such level."""
    return _LEVELS.get(text)


def parse_version(text: str) -> int | None:
    """Return the minor version, or None for a text that names none. Versions of the future are accepted."""
    if text == _LATEST_NAME:
        return LATEST
    match = _MINOR.fullmatch(text)
    minor = int(match[1]) if match is not None else LATEST
    return minor if minor < LATEST else None


def read_labels(labels: Mapping[str, str], defaults: Policy) -> LabelledPolicy:
    """Return the policy that the labels of a namespace name, with defaults for labels that are absent.

    A bad level enforces the restricted level, and audits and warns of nothing. A bad version is the latest. An enforced
    level also warns if it is stricter than the default and no label says otherwise.
    """
    if _LABELS.isdisjoint(labels):
        return LabelledPolicy(defaults)
    errors: list[fielderror.FieldError] = []

    def read(
        label: str, parse: Callable[[str], _T | None], *, default: _T, fallback: _T, rule: str = VERSION_RULE
    ) -> _T:
        text = labels.get(label)
        if text is None:
            return default
        value = parse(text)
        if value is None:
            errors.append(fielderror.invalid(_LABELS_PATH.key(label), text, rule))
            return fallback
        return value

    def read_level(label: str, *, default: Level, fallback: Level) -> Level:
        return read(label, parse_level, default=default, fallback=fallback, rule=LEVEL_RULE)

    def read_version(label: str, *, default: int) -> int:
        return read(label, parse_version, default=default, fallback=LATEST)

    enforce_level = read_level(ENFORCE, default=defaults.enforce.level, fallback=Level.RESTRICTED)
    is_enforced = ENFORCE in labels and not errors
    enforce = LevelVersion(enforce_level, read_version(ENFORCE_VERSION, default=defaults.enforce.minor))
    audit = LevelVersion(
        read_level(AUDIT, default=defaults.audit.level, fallback=Level.PRIVILEGED),
        read_version(AUDIT_VERSION, default=defaults.audit.minor),
    )
    warn = LevelVersion(
        read_level(WARN, default=defaults.warn.level, fallback=Level.PRIVILEGED),
        read_version(WARN_VERSION, default=defaults.warn.minor),
    )
    if WARN not in labels and is_enforced and enforce.level > warn.level:
        warn = LevelVersion(enforce.level, warn.minor if WARN_VERSION in labels else enforce.minor)
    return LabelledPolicy(Policy(enforce, audit, warn), tuple(errors))
