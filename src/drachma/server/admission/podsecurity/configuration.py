"""Configuration of the plugin: the policy of namespaces without labels, and requests that are not checked."""

from typing import Final

import msgspec

from drachma.server.admission.podsecurity.policies import Policy


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
