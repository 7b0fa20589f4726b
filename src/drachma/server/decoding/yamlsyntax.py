"""Reading YAML from clients, with the errors of upstream's parser.

Request bodies and applied configurations are read here. A repeated key is no error: the last one counts, and strict
validation reports it. Syntax errors are a DecodeError in upstream's words, whose parser differs from ours only in how
it counts lines.
"""

from typing import Any, NamedTuple

import msgspec
import yaml

from drachma import errors
from drachma.api import manifest, yamldialect
from drachma.server.calls.call import BODY_LIMIT
from drachma.server.decoding import jsonsyntax


class Read(NamedTuple):
    """The document of a text, and the problems that strict validation refuses."""

    content: Any
    problems: tuple[str, ...]


def read(data: bytes) -> Read:
    """Return the only document of a YAML text.

    Raises:
        errors.DecodeError: there are several documents, or strings that JSON cannot have.
    """
    if data[:1] == b"{":
        # Most clients send JSON, which is also YAML, and much faster to read.
        content = _read_json(data)
        if content is not None:
            return Read(content, ())
    repeated: list[manifest.Repeated] = []
    try:
        texts = manifest.read(data, max_bytes=BODY_LIMIT, repeated=repeated)
    except errors.DecodeError as error:
        raise errors.DecodeError(explain(data) or str(error)) from None
    if len(texts) != 1:
        raise errors.DecodeError(f"expected one document, found {len(texts)}")
    try:
        msgspec.json.encode(texts[0].content)
    except (UnicodeEncodeError, OverflowError, TypeError, ValueError) as error:
        raise errors.DecodeError(f"not a JSON value: {error}") from None
    lines = [
        f"\n  line {each.line}: key {msgspec.json.encode(each.key).decode()} already set in map" for each in repeated
    ]
    return Read(texts[0].content, (f"yaml: unmarshal errors:{''.join(lines)}",) if lines else ())


def _read_json(data: bytes) -> Any:
    """Return the content of a JSON text without repeated keys; None for any other text."""
    try:
        content = jsonsyntax.read(data)
    except errors.DecodeError:
        return None
    return None if jsonsyntax.may_repeat_keys(data, content) else content


def explain(data: bytes) -> str:
    """Return the first syntax error of a text; empty if there is none, or none before a limit."""
    try:
        for _event in yamldialect.events(data):
            pass
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line if error.problem_mark else 0
        if line:
            # The line of a scanner error is one behind that of a parser error.
            line += isinstance(error, yaml.scanner.ScannerError)
        elif error.context_mark:
            line = error.context_mark.line
        return (f"line {line}: " if line else "") + (error.problem or "unknown problem parsing YAML content")
    except (yaml.YAMLError, UnicodeDecodeError, errors.DecodeError):
        return ""
    return ""
