"""Schemas of versions in a notation: a block for a type, a line for a field, rules with their messages below.

::

    ResourceGroup                                        a type
      coveredResources* [str] minItems=1 atomic          a required field: an atomic list of texts
      flavors* [Flavor(...)] by=name                     a list whose items have a key field
      ! flavors must have ...                            what is said where the rule below it does not hold
        self.flavors.all(x, ...)

    Tolerations = [Toleration] maxItems=8                a name for a list with its limits, and rules below

    <T>  a map         set, atomic  kinds of lists and maps       enum=a|b  pattern=NAME  default=JSON

Rules are indented deeper where they belong to the field above them. Items of lists and maps carry limits of their own
in brackets. A version that differs from another begins with all its types; a block ``+Type`` changes some fields of
one: those that it names are put in, ``-name`` is taken out, and rules, where it has any, replace all rules of the type.

What is said is OpenAPI's form of it, as definitions of custom resources have it. Errors in a notation are programming
errors: KeyError for an unknown type or pattern, ValueError for a malformed line.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

Schema: TypeAlias = dict[str, Any]

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_PATTERNS: Final[Mapping[str, str]] = {
    "label": f"^{_LABEL}$",
    "subdomain": f"^{_SUBDOMAIN}$",
    "kind": "^(?i)[a-z]([-a-z0-9]*[a-z0-9])?$",
    "reason": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
    "condition": f"^({_SUBDOMAIN}/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
}
_NUMBER: Final = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
QUANTITY: Final[Mapping[str, Any]] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": rf"^(\+|-)?{_NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{_NUMBER}))?$",
    "x-kubernetes-int-or-string": True,
}
_PLAIN: Final[Mapping[str, Mapping[str, Any]]] = {
    "str": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "Time": {"type": "string", "format": "date-time"},
    "Quantity": QUANTITY,
}
_FIELD: Final = re.compile(r"(?P<name>\w+)(?P<required>\*?) (?P<type>[\[<]?\w+(?:\([^)]*\))?[\]>]?)(?P<marks>.*)")


class _Rule(NamedTuple):
    message: str
    expression: str

    def written(self) -> Schema:
        return {"message": self.message, "rule": self.expression}


class _Field(NamedTuple):
    type: str
    marks: str
    is_required: bool
    rules: tuple[_Rule, ...] = ()


class _Type(NamedTuple):
    fields: Mapping[str, _Field | None]
    """None: taken out."""
    rules: tuple[_Rule, ...]
    stands_for: str = ""
    """What the type is another name for; it has no fields then."""

    def changed(self, by: "_Type") -> "_Type":
        fields = {**self.fields, **by.fields}
        kept = {name: field for name, field in fields.items() if field is not None}
        return _Type(kept, by.rules or self.rules)


class Schemas:
    """The schemas of the types of one version; ``known`` are types that are not in the notation.

    What types and their fields mean is in ``meanings``, by the names of both, or of the type alone.
    """

    def __init__(
        self, *texts: str, known: Mapping[str, Mapping[str, Any]], meanings: Mapping[tuple[str, str], str]
    ) -> None:
        self._known: Final = known
        self._meanings: Final = meanings
        self._types: Final[dict[str, _Type]] = {}
        for text in texts:
            for head, block in _blocks(text):
                name = head.removeprefix("+")
                self._types[name] = block if name == head else self._types[name].changed(block)

    def kind(self, name: str) -> Schema:
        """The schema of whole objects."""
        schema = self._object(name)
        envelope = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
        return self._meant({**schema, "properties": {**envelope, **schema["properties"]}}, name, "")

    def _object(self, type_name: str) -> Schema:
        described = self._types[type_name]
        fields = {name: field for name, field in described.fields.items() if field is not None}
        properties = {name: self._meant(self._field(field), type_name, name) for name, field in fields.items()}
        schema: Schema = {"type": "object", "properties": properties}
        if required := sorted(name for name, field in fields.items() if field.is_required):
            schema["required"] = required
        return _ruled(schema, described.rules)

    def _meant(self, schema: Schema, type_name: str, field: str) -> Schema:
        text = self._meanings.get((type_name, field))
        return schema if text is None else {"description": text, **schema}

    def _field(self, field: _Field) -> Schema:
        return _ruled(_marked(self._of(field.type), field.marks), field.rules)

    def _of(self, text: str) -> Schema:
        if text[0] in "[<":
            item, _, limits = text[1:-1].partition("(")
            items = _marked(self._of(item), limits.rstrip(")"))
            if text[0] == "[":
                return {"type": "array", "items": items}
            return {"type": "object", "additionalProperties": items}
        if text in _PLAIN:
            return dict(_PLAIN[text])
        if text in self._known:
            return dict(self._known[text])
        described = self._types[text]
        if described.stands_for:
            element, _, marks = described.stands_for.partition(" ")
            return _ruled(_marked(self._of(element), marks), described.rules)
        return self._object(text)


def _ruled(schema: Schema, rules: tuple[_Rule, ...]) -> Schema:
    return {**schema, "x-kubernetes-validations": [each.written() for each in rules]} if rules else schema


def _marked(schema: Schema, marks: str) -> Schema:
    for mark in marks.split():
        name, _, value = mark.partition("=")
        match name:
            case "atomic" | "set":
                kind = "list" if schema["type"] == "array" else "map"
                schema[f"x-kubernetes-{kind}-type"] = name
            case "by":
                schema |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": value.split(",")}
            case "enum":
                schema["enum"] = value.split("|")
            case "pattern":
                schema["pattern"] = _PATTERNS[value]
            case "default":
                schema["default"] = json.loads(value)
            case _:
                schema[name] = int(value)
    return schema


def _blocks(text: str) -> Iterator[tuple[str, _Type]]:
    """The heads of blocks, and what they say."""
    for block in re.split(r"\n(?=\S)", text.strip("\n")):
        line, *lines = block.split("\n")
        head, _, stands_for = line.partition(" = ")
        yield head, _read(lines)._replace(stands_for=stands_for)


def _squeezed(line: str) -> str:
    """A line without the space that breaking it up has brought in."""
    return " ".join(line.split())


def _read(lines: list[str]) -> _Type:
    fields: dict[str, _Field | None] = {}
    rules: list[_Rule] = []
    name = ""
    rest = iter(lines)
    for line in rest:
        text = _squeezed(line)
        if text.startswith("! "):
            rule = _Rule(text[2:], _squeezed(next(rest)))
            field = fields.get(name)
            if line.startswith("    ") and field is not None:
                fields[name] = field._replace(rules=(*field.rules, rule))
            else:
                rules.append(rule)
        elif text.startswith("-"):
            fields[text[1:]] = None
        else:
            match = _FIELD.fullmatch(text)
            if match is None:
                raise ValueError(f"not a field: {text!r}")
            name = match["name"]
            fields[name] = _Field(match["type"], match["marks"], bool(match["required"]))
    return _Type(fields, tuple(rules))
