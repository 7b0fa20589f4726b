"""Names for ``metadata.generateName``: the server draws them, and components that must know a name beforehand."""

import random
from typing import Final

from drachma.values import names

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH: Final = 5


def draw(prefix: str, *, chance: random.Random) -> str:
    """The prefix, shortened where it must be, and five random characters."""
    suffix = "".join(chance.choices(_ALPHABET, k=_SUFFIX_LENGTH))
    return prefix[: names.LABEL_LENGTH - _SUFFIX_LENGTH] + suffix
