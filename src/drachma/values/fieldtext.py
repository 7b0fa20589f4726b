"""The wording of upstream's field errors, for values that report several at once as one text.

Called by the selectors here; validation has its own field errors, which are data. Paths are texts such as
``nodeSelectorTerms[0].matchFields[1]``; the empty text is the root.
"""

import json
from collections.abc import Iterable, Sequence

from drachma.values import quotation


def child(path: str, name: str) -> str:
    """The path of a field."""
    return f"{path}.{name}" if path else name


def invalid(path: str, value: str | Sequence[str] | None, detail: str) -> str:
    """A value that breaks a rule; a missing list is shown as ``null``."""
    value_text = quotation.quote(value) if isinstance(value, str) else _json(value)
    return f"{path}: Invalid value: {value_text}: {detail}"


def unsupported(path: str, value: str, supported: Iterable[str]) -> str:
    """A value that is none of a few."""
    choices = ", ".join(quotation.quote(each) for each in supported)
    return f"{path}: Unsupported value: {_json(value)}: supported values: {choices}"


def together(messages: Iterable[str]) -> str:
    """Several errors as one, each once."""
    distinct = tuple(dict.fromkeys(messages))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def _json(value: str | Sequence[str] | None) -> str:
    text = json.dumps(
        value if value is None or isinstance(value, str) else list(value),
        ensure_ascii=False,
        separators=(",", ":"),
    )
    # Go's encoder also escapes what could end a script in a web page.
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
