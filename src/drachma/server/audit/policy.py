"""Audit policies: the level of detail for each call. The first rule that matches a call decides.

A policy is a YAML document of kind ``Policy`` in ``audit.k8s.io/v1``, as upstream reads it. Bodies that hold secrets
are never recorded: see :data:`SENSITIVE`.
"""

import enum
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from drachma import errors
from drachma.server.access.authorization import Attributes
from drachma.server.decoding import yamlsyntax

_ANY: Final = "*"


class Level(enum.IntEnum):
    """Level of detail of an event."""

    NONE = 0
    METADATA = 1
    REQUEST = 2
    REQUEST_RESPONSE = 3


LEVELS: Final = {
    "None": Level.NONE,
    "Metadata": Level.METADATA,
    "Request": Level.REQUEST,
    "RequestResponse": Level.REQUEST_RESPONSE,
}
STAGES: Final = ("RequestReceived", "ResponseStarted", "ResponseComplete", "Panic")

SENSITIVE: Final = frozenset(
    {("", "secrets"), ("", "configmaps"), ("", "serviceaccounts/token"), ("authentication.k8s.io", "tokenreviews")}
)
"""Groups and resources of which only metadata is recorded."""


class _Resources(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    group: str = ""
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()

    def matches(self, attributes: Attributes) -> bool:
        if self.group != attributes.group:
            return False
        if not self.resources:
            return True
        forms = {attributes.full_resource, _ANY, f"{attributes.resource}/*"}
        if attributes.subresource:
            forms.add(f"*/{attributes.subresource}")
        is_named = not self.resource_names or attributes.name in self.resource_names
        return is_named and not forms.isdisjoint(self.resources)


class _Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    level: str
    users: tuple[str, ...] = ()
    user_groups: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    resources: tuple[_Resources, ...] = ()
    namespaces: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = msgspec.field(default=(), name="nonResourceURLs")
    omit_stages: tuple[str, ...] = ()
    omit_managed_fields: bool | None = None

    def matches(self, attributes: Attributes) -> bool:
        if self.users and attributes.user.name not in self.users:
            return False
        if self.user_groups and set(self.user_groups).isdisjoint(attributes.user.groups):
            return False
        if self.verbs and attributes.verb not in self.verbs:
            return False
        if self.non_resource_urls:
            return attributes.path is not None and any(
                _covers(each, attributes.path) for each in self.non_resource_urls
            )
        if not self.resources and not self.namespaces:
            return True
        if attributes.path is not None or (self.namespaces and attributes.namespace not in self.namespaces):
            return False
        return not self.resources or any(each.matches(attributes) for each in self.resources)


class _Document(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    rules: tuple[_Rule, ...]
    metadata: Mapping[str, Any] = {}
    omit_stages: tuple[str, ...] = ()
    omit_managed_fields: bool = False


class Treatment(NamedTuple):
    """Level of a call, and the stages that are omitted."""

    level: Level
    omitted_stages: frozenset[str] = frozenset()
    omits_managed_fields: bool = False


NOTHING: Final = Treatment(Level.NONE)


class Policy:
    """Decides the treatment of calls."""

    def __init__(self, rules: Sequence[_Rule], *, omitted_stages: frozenset[str], omits_managed_fields: bool) -> None:
        self._rules = [
            (
                rule,
                Treatment(
                    LEVELS[rule.level],
                    omitted_stages | frozenset(rule.omit_stages),
                    omits_managed_fields if rule.omit_managed_fields is None else rule.omit_managed_fields,
                ),
            )
            for rule in rules
        ]

    def treatment(self, attributes: Attributes) -> Treatment:
        """Return the treatment of a call; nothing is recorded if no rule matches."""
        treatment = next((treatment for rule, treatment in self._rules if rule.matches(attributes)), NOTHING)
        if treatment.level > Level.METADATA and _is_sensitive(attributes):
            return treatment._replace(level=Level.METADATA)
        return treatment


def _is_sensitive(attributes: Attributes) -> bool:
    return not SENSITIVE.isdisjoint(
        {(attributes.group, attributes.resource), (attributes.group, attributes.full_resource)}
    )


def _covers(pattern: str, path: str) -> bool:
    return path.startswith(pattern.removesuffix(_ANY)) if pattern.endswith(_ANY) else path == pattern


def read(text: bytes, *, title: str) -> Policy:
    """Read a policy; messages call it by ``title``.

    Raises:
        errors.InvalidValueError: the text is not a policy; the message says why.
    """
    try:
        document = msgspec.convert(yamlsyntax.read(text).content, _Document)
    except (errors.DecodeError, msgspec.ValidationError) as error:
        raise errors.InvalidValueError(f"audit policy {title}: {error}") from None
    if (document.api_version, document.kind) != ("audit.k8s.io/v1", "Policy"):
        actual = f"{document.kind} of {document.api_version}"
        raise errors.InvalidValueError(f"audit policy {title}: is a {actual}, not a Policy of audit.k8s.io/v1")
    for position, rule in enumerate(document.rules):
        _check(rule, f"audit policy {title}: rules[{position}]")
    return Policy(
        document.rules,
        omitted_stages=frozenset(document.omit_stages),
        omits_managed_fields=document.omit_managed_fields,
    )


def _check(rule: _Rule, at: str) -> None:
    if rule.level not in LEVELS:
        raise errors.InvalidValueError(f"{at}.level: {rule.level!r} is not one of {', '.join(LEVELS)}")
    for stage in rule.omit_stages:
        if stage not in STAGES:
            raise errors.InvalidValueError(f"{at}.omitStages: {stage!r} is not one of {', '.join(STAGES)}")
    if rule.non_resource_urls and (rule.resources or rule.namespaces):
        detail = "rules cannot apply to both regular resources and non-resource URLs"
        raise errors.InvalidValueError(f"{at}.nonResourceURLs: {detail}")
