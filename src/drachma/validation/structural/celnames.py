"""Names of fields in CEL: those that are no identifiers are escaped, as upstream does it."""

import re
from typing import Final

from drachma.bounds import memory

_RESERVED: Final = frozenset(
    {
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
        "let", "loop", "package", "namespace", "return", "var", "void", "while",
    }
)  # fmt: skip
_SPECIAL: Final = re.compile(r"__|[-./]")
_WORDS: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_is_escapable: Final = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*").fullmatch


@memory.remember(entries=4096, longest=256)
def escape(name: str) -> str | None:
    """The identifier for a field; None for names that have none, which no expression can reach."""
    if not _is_escapable(name):
        return None
    if name in _RESERVED:
        return f"__{name}__"
    return _SPECIAL.sub(lambda match: _WORDS[match[0]], name)
