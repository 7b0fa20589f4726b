"""Names for ``metadata.generateName``: the server draws them, and components that must know a name beforehand."""

import hashlib
from collections.abc import Sequence
from typing import Final, Protocol

from drachma.values import names

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH: Final = 5


class Chance(Protocol):
    """Source of randomness for names, such as a ``random.Random``."""

    def choices(self, population: Sequence[str], *, k: int) -> Sequence[str]: ...


def derived(prefix: str, source: str) -> str:
    """The prefix and five characters that follow from a text, where names must differ but need not be drawn."""
    digest = hashlib.sha256(source.encode()).digest()
    return prefix + "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:_SUFFIX_LENGTH])


def draw(prefix: str, *, chance: Chance) -> str:
    """The prefix, shortened where it must be, and five random characters."""
    suffix = "".join(chance.choices(_ALPHABET, k=_SUFFIX_LENGTH))
    return prefix[: names.LABEL_LENGTH - _SUFFIX_LENGTH] + suffix
