"""Reads the tables of types: a line for a type, its fields as ``name=type`` with marks behind.

::

    @io.k8s.api.core.v1                       the package of the types that follow
    Container: name=str* env={EnvVar:name}~   a type and its fields; indented lines go on
    LabelSelector!: matchLabels=<str>         an atomic type: it has one owner

    [T]        an atomic list        <T>     a map
    {T}        a set                 <<T>>   an atomic map
    {T:a,b}    items with key fields a and b

    *   required                     ~   patches merge it, by the first key field
    !   written even where empty     ~k  patches merge it by field k, although apply does not
    /x  default x (for key fields)   +   with ~: a patch names the keys to retain
    ?   zero is not nothing: a pointer to a scalar

Errors in a table are programming errors: KeyError for an unknown type, ValueError for a malformed line.
"""

import re
from collections.abc import Iterator, Mapping

from drachma.server.schema import model

_FIELD = re.compile(
    r"(?P<name>[A-Za-z0-9]+)=(?P<type>[\[{<]*[A-Za-z0-9]+(?::[A-Za-z0-9,]+)?[\]}>]*)"
    r"(?P<filled>!?)(?P<optional>\??)(?P<required>\*?)(?P<default>/[^~]*)?(?P<merges>~(?P<key>[A-Za-z0-9]*)(?P<retains>\+?))?"
)
_ZERO: Mapping[str, object] = {"string": "", "integer": 0, "boolean": False}


class Table:
    """All types of several texts; types refer to each other by bare name, whatever their package."""

    def __init__(self, *texts: str) -> None:
        self._lines: dict[str, tuple[str, str]] = {}
        self._types: dict[str, model.Object] = {}
        for text in texts:
            for package, line in _lines(text):
                name, _, rest = line.partition(":")
                self._lines[name.rstrip("!")] = (package, f"{name}:{rest}")

    def __contains__(self, name: str) -> bool:
        return name in self._lines

    def names(self) -> tuple[str, ...]:
        return tuple(self._lines)

    def object(self, name: str) -> model.Object:
        """The type of that name, made once; its parts are made with it, so types cannot refer in circles."""
        if name not in self._types:
            package, line = self._lines[name]
            head, _, rest = line.partition(":")
            fields = {field.name: field for field in map(self.field, rest.split())}
            self._types[name] = model.Object(package, name, fields, atomic=head.endswith("!"))
        return self._types[name]

    def field(self, text: str) -> model.Field:
        """One field in this notation."""
        match = _FIELD.fullmatch(text)
        if match is None:
            raise ValueError(f"not a field: {text!r}")
        kind = self._type(match["type"])
        required = bool(match["required"])
        keys = kind.keys if isinstance(kind, model.ListOf) else None
        return model.Field(
            name=match["name"],
            type=kind,
            required=required,
            # What is required has no omitempty in Go, so that a scalar is written although it is zero.
            filled=bool(match["filled"]) or (required and isinstance(kind, model.Scalar)),
            nulled=bool(match["filled"]) and _is_null(kind),
            optional=bool(match["optional"]),
            default=_default(kind, match["default"], required=required),
            merges=bool(match["merges"]) and isinstance(kind, model.ListOf),
            merge_key=match["key"] or (keys[0] if keys and match["merges"] else ""),
            retains_keys=bool(match["retains"]),
        )

    def _type(self, text: str) -> model.Type:
        if text[0] == "[":
            return model.ListOf(self._type(text[1:-1]))
        if text[0] == "{":
            element, _, keys = text[1:-1].partition(":")
            return model.ListOf(self._type(element), tuple(keys.split(",")) if keys else ())
        if text[:2] == "<<":
            return model.MapOf(self._type(text[2:-2]), atomic=True)
        if text[0] == "<":
            return model.MapOf(self._type(text[1:-1]))
        plain = model.PLAIN.get(text)
        return plain if plain is not None else self.object(text)


def _is_null(kind: model.Type) -> bool:
    """Whether Go writes null for an empty value of the type."""
    return isinstance(kind, model.ListOf | model.MapOf) or kind in (model.TIME, model.MICRO_TIME)


def _default(kind: model.Type, written: str | None, *, required: bool) -> object:
    if not isinstance(kind, model.Scalar) or (written is None and not required):
        return None
    text = (written or "/")[1:]
    if not text or text == str(_ZERO.get(kind.json)):
        return _ZERO.get(kind.json)
    return int(text) if kind.json == "integer" else text


def _lines(text: str) -> Iterator[tuple[str, str]]:
    package, line = "", ""
    for raw in [*text.splitlines(), ""]:
        if raw.startswith(" ") and line:
            line += raw
            continue
        if line:
            yield package, line
        line = ""
        if raw.startswith("@"):
            package = raw[1:]
        elif raw.strip():
            line = raw
