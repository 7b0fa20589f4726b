"""References to variables in commands, arguments and values: ``$(NAME)``, and ``$$`` for a dollar. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_REFERENCE: Final = re.compile(r"\$(?:\$|\(([^)]*)\))")


def expand(text: str, variables: Mapping[str, str]) -> str:
    """A text with its references replaced; those to what there is not stay as they are."""

    def replaced(match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            return "$"
        return variables.get(name, match[0])

    return _REFERENCE.sub(replaced, text)
