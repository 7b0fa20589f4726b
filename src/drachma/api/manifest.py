"""Manifests: files with one or more documents, as YAML or JSON.

YAML is read as Kubernetes reads it: no timestamps, no base-60 numbers, ``1e3`` is a number, keys become strings. Empty
documents are skipped. Errors name the line if it is known: broken syntax, duplicate keys, texts without a document,
recursive aliases, and texts above :data:`MAX_BYTES`, also after aliases and merges are expanded.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import yaml

from drachma import errors
from drachma.api import yamldialect

MAX_BYTES: Final = 16 * 1024 * 1024
"""Limit on a manifest: far above the largest object of an API server (3 MiB), and quickly parsed."""

_NODE_BYTES: Final = 2
"""Minimum length of a value with its separator."""


class Document(NamedTuple):
    """A document of a manifest: its number, counted from 1, its first line, and its content."""

    number: int
    line: int
    content: Any


Repeated = yamldialect.Repeated
"""A duplicate key, and the line of its value."""


def read(text: str | bytes, *, max_bytes: int = MAX_BYTES, repeated: list[Repeated] | None = None) -> list[Document]:
    """Return all documents of a manifest. Raises DecodeError with the document and line of the first problem.

    If ``repeated`` is given, duplicate keys are added to it and the last value counts; otherwise they are errors.
    """
    if len(text) > max_bytes:
        raise errors.DecodeError(f"has {len(text)} bytes: must have at most {max_bytes}")
    decoded = _unicode(text)
    if not decoded.strip():
        raise errors.DecodeError("is empty: expected at least one document")
    if repeated is None and decoded.lstrip().startswith("{"):
        documents = _read_json(decoded)
        if not isinstance(documents, _NotJson):
            return documents
        try:
            return list(_read_yaml(decoded, repeated, max_bytes=max_bytes))
        except yamldialect.TooManyValuesError as error:
            # No manifest is so large, so it was meant as JSON, such as a dump that is incomplete.
            raise errors.DecodeError(str(documents) or str(error)) from None
    return list(_read_yaml(decoded, repeated, max_bytes=max_bytes))


def write_yaml(documents: Iterable[Any], *, width: int = 1_000_000) -> str:
    """Return documents as YAML, separated by ``---``, in block style and kubectl's order of keys."""
    return yaml.dump_all(
        documents,
        Dumper=yamldialect.Dumper,
        sort_keys=True,
        default_flow_style=False,
        allow_unicode=True,
        width=width,
    )


def write_json(documents: Iterable[Any]) -> str:
    """Return one document, or several as a ``v1`` List, as indented JSON."""
    items = list(documents)
    content = items[0] if len(items) == 1 else {"apiVersion": "v1", "kind": "List", "items": items}
    return json.dumps(content, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def _unicode(text: str | bytes) -> str:
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise errors.DecodeError(f"is not UTF-8: {error.reason} at byte {error.start}") from None


# JSON


class _Duplicated(dict[str, Any]):
    """An object with a duplicate key; becomes an error once its path is known."""

    key: str


class _NotJson(str):
    """Problem of a text that is not JSON; empty if it is nested too deeply."""

    __slots__ = ()


def _read_json(text: str) -> list[Document] | _NotJson:
    """Return the documents of a JSON text, or the problem. The parser of YAML is slower and explains more."""
    has_duplicates = False

    def from_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal has_duplicates
        content = dict(pairs)
        if len(content) == len(pairs):
            return content
        has_duplicates = True
        duplicated = _Duplicated(content)
        keys: set[str] = set()
        duplicated.key = next(key for key, _ in pairs if key in keys or keys.add(key))  # type: ignore[func-returns-value]
        return duplicated

    try:
        content = json.loads(text, object_pairs_hook=from_pairs, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        return _NotJson(f"document 1: line {error.lineno}, column {error.colno}: not JSON: {error.msg}")
    except RecursionError:
        return _NotJson()
    for path, value in _walk(content) if has_duplicates else ():
        if isinstance(value, _Duplicated):
            where = f"{path}.{value.key}" if path else value.key
            raise errors.DecodeError(f"document 1: duplicate key {where}")
    return [Document(1, 1, content)]


def _refuse_constant(name: str) -> Any:
    raise errors.DecodeError(f"document 1: {name} is not a JSON value")


def _walk(content: Any) -> Iterator[tuple[str, Any]]:
    stack = [("", content)]
    while stack:
        path, value = stack.pop()
        yield path, value
        if isinstance(value, dict):
            stack += [(f"{path}.{key}" if path else str(key), item) for key, item in value.items()]
        elif isinstance(value, list):
            stack += [(f"{path}[{index}]", item) for index, item in enumerate(value)]


def _read_yaml(text: str, repeated: list[Repeated] | None, *, max_bytes: int) -> Iterator[Document]:
    number, is_empty = 0, True
    yamldialect.refuse_depth(text)
    try:
        loader = yamldialect.Loader(text)
        loader.repeated = repeated
    except yaml.YAMLError as error:
        raise errors.DecodeError(f"document 1: {_problem(error)}") from None
    try:
        while loader.check_node():
            number += 1
            node = loader.get_node()
            assert node is not None, "check_node promised a document"
            _refuse_explosion(node, max_bytes=2 * max_bytes)
            content = loader.construct_document(node)
            if content is None:
                # As kubectl: an empty template leaves its separator behind.
                continue
            is_empty = False
            yield Document(number, yamldialect.line_of(node), content)
    except yaml.YAMLError as error:
        raise errors.DecodeError(f"document {max(number, 1)}: {_problem(error)}") from None
    except errors.DecodeError as error:
        raise errors.DecodeError(f"document {number}: {error}") from None
    except ValueError as error:
        raise errors.DecodeError(f"document {max(number, 1)}: {error}") from None
    finally:
        loader.dispose()
    if is_empty:
        raise errors.DecodeError("is empty: expected at least one document")


def _problem(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        parts = [part for part in (error.context, error.problem) if part]
        return f"{where}not YAML: {', '.join(parts)}"
    return f"not YAML: {' '.join(str(error).split())}"


def _refuse_explosion(root: yaml.Node, *, max_bytes: int) -> None:
    """Raise DecodeError if a document is too long after its aliases are expanded; measured without expanding them.

    A merged mapping counts like an alias, so merge keys are bounded too.
    """
    sizes: dict[int, int] = {}
    entered: set[int] = set()
    stack: list[tuple[yaml.Node, bool]] = [(root, False)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            entered.discard(id(node))
            sizes[id(node)] = _NODE_BYTES + sum(sizes[id(part)] for part in _parts(node))
        elif id(node) in entered:
            raise errors.DecodeError("an alias contains itself")
        elif id(node) in sizes:
            continue
        elif parts := _parts(node):
            entered.add(id(node))
            stack.append((node, True))
            stack.extend((part, False) for part in parts)
        else:
            sizes[id(node)] = _NODE_BYTES + len(node.value)
    if sizes[id(root)] > max_bytes:
        raise errors.DecodeError(f"its aliases stand for more than {max_bytes} bytes")


def _parts(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []
