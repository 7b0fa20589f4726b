"""What upstream's YAML parser says about a text, and the value in it.

Request bodies and applied configurations come here. A key that is written twice is no error: the last one counts, and
strict readers are told. Syntax errors are a DecodeError in upstream's words, whose parser is the twin of ours but for
how it counts lines.
"""

from typing import Any, NamedTuple

import msgspec
import yaml

from drachma import errors
from drachma.api import manifest, yamldialect
from drachma.server.calls.call import BODY_LIMIT
from drachma.server.decoding import jsonsyntax


class Read(NamedTuple):
    """The one document of a text, and what strict readers have against it."""

    content: Any
    problems: tuple[str, ...]


def read(data: bytes) -> Read:
    """The one document of a YAML text; a DecodeError where there are more, or texts that JSON cannot have."""
    if data[:1] == b"{":
        # Most clients send JSON, which is YAML, too, and far quicker to read.
        content = _read_json(data)
        if content is not None:
            return Read(content, ())
    repeated: list[manifest.Repeated] = []
    try:
        found = manifest.read(data, max_bytes=BODY_LIMIT, repeated=repeated)
    except errors.DecodeError as error:
        raise errors.DecodeError(explain(data) or str(error)) from None
    if len(found) != 1:
        raise errors.DecodeError(f"expected one document, found {len(found)}")
    try:
        msgspec.json.encode(found[0].content)
    except (UnicodeEncodeError, OverflowError, TypeError, ValueError) as error:
        raise errors.DecodeError(f"not a JSON value: {error}") from None
    lines = [
        f"\n  line {each.line}: key {msgspec.json.encode(each.key).decode()} already set in map" for each in repeated
    ]
    return Read(found[0].content, (f"yaml: unmarshal errors:{''.join(lines)}",) if lines else ())


def _read_json(data: bytes) -> Any:
    """The content of a text that is JSON with each key once; None for any other."""
    try:
        content = jsonsyntax.read(data)
    except errors.DecodeError:
        return None
    return None if jsonsyntax.may_repeat_keys(data, content) else content


def explain(data: bytes) -> str:
    """The first syntax error of a text; empty if there is none, or none before a limit."""
    try:
        for _event in yamldialect.events(data):
            pass
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line if error.problem_mark else 0
        if line:
            # A scanner has not moved on to the line that it complains about, a parser has.
            line += isinstance(error, yaml.scanner.ScannerError)
        elif error.context_mark:
            line = error.context_mark.line
        return (f"line {line}: " if line else "") + (error.problem or "unknown problem parsing YAML content")
    except (yaml.YAMLError, UnicodeDecodeError, errors.DecodeError):
        return ""
    return ""
