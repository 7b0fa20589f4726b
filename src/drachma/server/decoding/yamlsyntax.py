"""What upstream's YAML parser says about a text, and the value in it.

Request bodies and applied configurations come here. A key that is written twice is no error: the last one counts, and
strict readers are told. Syntax errors are a DecodeError in upstream's words, whose parser is the twin of ours but for
how it counts lines.
"""

from typing import Any, NamedTuple

import msgspec
import yaml

from drachma import errors
from drachma.api import manifest


class Read(NamedTuple):
    """The one document of a text, and what strict readers have against it."""

    content: Any
    problems: tuple[str, ...]


def read(data: bytes) -> Read:
    """The one document of a YAML text; a DecodeError where there are more, or texts that JSON cannot have."""
    repeated: list[manifest.Repeated] = []
    try:
        found = manifest.read(data, repeated=repeated)
    except errors.DecodeError as error:
        raise errors.DecodeError(explain(data) or str(error)) from None
    if len(found) != 1:
        raise errors.DecodeError(f"expected one document, found {len(found)}")
    try:
        msgspec.json.encode(found[0].content)
    except (UnicodeEncodeError, OverflowError, TypeError) as error:
        raise errors.DecodeError(f"not a JSON value: {error}") from None
    lines = [
        f"\n  line {each.line}: key {msgspec.json.encode(each.key).decode()} already set in map" for each in repeated
    ]
    return Read(found[0].content, (f"yaml: unmarshal errors:{''.join(lines)}",) if lines else ())


def explain(data: bytes) -> str:
    """The first syntax error of a text; empty if there is none."""
    try:
        for _event in yaml.parse(data, Loader=yaml.CBaseLoader):
            pass
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line if error.problem_mark else 0
        if line:
            # A scanner has not moved on to the line that it complains about, a parser has.
            line += isinstance(error, yaml.scanner.ScannerError)
        elif error.context_mark:
            line = error.context_mark.line
        return (f"line {line}: " if line else "") + (error.problem or "unknown problem parsing YAML content")
    except (yaml.YAMLError, UnicodeDecodeError):
        return ""
    return ""
