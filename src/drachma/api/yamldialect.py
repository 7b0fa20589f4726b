"""YAML as Kubernetes uses it: values of JSON in the syntax of YAML.

A loader and a dumper for PyYAML; :mod:`drachma.api.manifest` uses them. Unlike plain YAML 1.1 there are no
timestamps, base-60 numbers, sets or binary data, ``1e3`` is a number, mapping keys become strings, and a duplicate
key is an error.
"""

import contextlib
import re
from collections.abc import Generator, Iterator
from typing import Any, Final, NamedTuple

import yaml

from drachma import errors
from drachma.api import shape

MAX_DEPTH: Final = 200
"""Maximum depth of nesting; PyYAML's C composer recurses without a limit."""

MAX_NODES: Final = 200_000
"""Maximum number of values and keys; each takes ten microseconds to read. JSON has no such limit."""

_TEXT = "tag:yaml.org,2002:str"


class TooManyValuesError(errors.DecodeError):
    """A text has more values than any manifest."""


class Repeated(NamedTuple):
    """A duplicate key, and the line of its value."""

    key: str
    line: int


def events(text: str | bytes) -> Iterator[yaml.Event]:
    """Yield the parser events of a text. Raises DecodeError if it is nested too deeply or too large."""
    depth = count = 0
    for event in yaml.parse(text, Loader=yaml.CBaseLoader):
        count += isinstance(event, yaml.NodeEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise errors.DecodeError(f"nested deeper than {MAX_DEPTH} levels")
        if count > MAX_NODES:
            raise TooManyValuesError(f"has more than {MAX_NODES} values")
        yield event


class Loader(yaml.CSafeLoader):
    """PyYAML's C loader with Kubernetes' scalars; duplicate keys are refused or collected."""

    repeated: list[Repeated] | None = None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002
        self.flatten_mapping(node)
        content: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = _key(self.construct_object(key_node, deep=True), key_node)
            if key in content:
                if self.repeated is None:
                    raise errors.DecodeError(f"line {line_of(key_node)}: duplicate key {key}")
                self.repeated.append(Repeated(key, line_of(value_node)))
            content[key] = self.construct_object(value_node, deep=deep)
        return content

    def construct_yaml_map(self, node: yaml.MappingNode) -> Generator[dict[Any, Any], None, None]:
        content: dict[Any, Any] = {}
        yield content
        content.update(self.construct_mapping(node))


_INT = (
    "tag:yaml.org,2002:int",
    re.compile(r"^[-+]?(?:0b[0-1_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)$"),
    list("-+0123456789"),
)
_FLOAT = (
    "tag:yaml.org,2002:float",
    re.compile(r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?)$"),
    list("-+0123456789."),
)


def _construct_int(loader: Loader, node: yaml.ScalarNode) -> int:
    text = str(loader.construct_scalar(node)).replace("_", "").lower()
    sign, digits = (text[0], text[1:]) if text[:1] in ("+", "-") else ("", text)
    bases = {"0b": 2, "0o": 8, "0x": 16}
    base = bases.get(digits[:2], 8 if len(digits) > 1 and digits[0] == "0" else 10)
    return int(sign + digits, base)


def _construct_float(loader: Loader, node: yaml.ScalarNode) -> float:
    return float(loader.construct_scalar(node))


# Only values of JSON: manifests have no dates, binary data, sets or Python objects.
Loader.yaml_constructors = {
    **{
        tag: constructor
        for tag, constructor in yaml.CSafeLoader.yaml_constructors.items()
        if tag is None or tag.rpartition(":")[2] in ("null", "bool", "seq", "str")
    },
    "tag:yaml.org,2002:map": Loader.construct_yaml_map,
    _INT[0]: _construct_int,
    _FLOAT[0]: _construct_float,
}
Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] in ("null", "bool", "merge")]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver(*_INT)
Loader.add_implicit_resolver(*_FLOAT)


def line_of(node: yaml.Node) -> int:
    """Return the first line of a node, counted from 1."""
    return int(node.start_mark.line) + 1


def _key(key: Any, node: yaml.Node) -> str:
    """Return a key as a string, as Kubernetes converts scalar keys."""
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return str(key).lower()
    if isinstance(key, int | float):
        return str(key)
    raise errors.DecodeError(f"line {line_of(node)}: expected a string as key, found {shape.describe(key)}")


class Dumper(yaml.CSafeDumper):
    """Dumper without aliases, which writes multi-line strings as blocks."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


# Quotes texts that a YAML reader, ours or one with dates and base-60 numbers, would not read as strings.
Dumper.add_implicit_resolver(*_INT)
Dumper.add_implicit_resolver(*_FLOAT)
Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^[yYnN]$"), list("yYnN"))


def _represent_text(dumper: Dumper, text: str) -> yaml.ScalarNode:
    """Represent a text as kubectl does: in double quotes if it would be read as something else."""
    style = None
    if "\n" in text:
        style = "|"
    elif dumper.resolve(yaml.ScalarNode, text, (True, False)) != _TEXT:  # type: ignore[no-untyped-call]
        style = '"'
    return dumper.represent_scalar(_TEXT, str(text), style=style)


Dumper.add_representer(str, _represent_text)
# Absent values and enumeration members are written as the plain values that they equal.
Dumper.add_multi_representer(str, _represent_text)
Dumper.add_multi_representer(int, Dumper.represent_int)
Dumper.add_multi_representer(tuple, Dumper.represent_list)
Dumper.add_multi_representer(dict, Dumper.represent_dict)


def refuse_depth(text: str | bytes) -> None:
    """Raise DecodeError if values are nested too deeply or are too many to compose."""
    # The reader raises the same syntax error, with the number of the document.
    with contextlib.suppress(yaml.YAMLError):
        for _event in events(text):
            pass
