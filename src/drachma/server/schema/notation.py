"""Types in a notation: a line for a type, its fields as ``name=type`` with marks behind.

::

    Container: name=str* env={EnvVar:name}~   a type and its fields; indented lines go on
    LabelSelector!: matchLabels=<str>         an atomic type: it has one owner

    [T]        an atomic list        <T>     a map
    {T}        a set                 <<T>>   an atomic map
    {T:a,b}    items with key fields a and b

    *   required                     ~   patches merge it, by the first key field
    !   written even where empty     ~k  patches merge it by field k, although apply does not
    /x  default x (for key fields)   +   with ~: a patch names the keys to retain
    ?   zero is not nothing: a pointer to a scalar; with ! it is written as null where it is absent
    ~=  patches replace it whole, although it is an object
    @T  Go's type for a text, or for the keys of a map
    ^T  Go has the field from a struct T that stands inside of this one

Field numbers of protobuf are in lines of their own (:mod:`drachma.server.schema.fieldnumbers`), and so are the texts of
``kubectl explain``: ``Type: text`` and ``Type.field: text``.

Errors in a notation are programming errors: KeyError for an unknown type, ValueError for a malformed line.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType

from drachma.server.schema import docstrings, fieldnumbers, model

_FIELD = re.compile(
    r"(?P<name>[A-Za-z0-9$-]+)=(?P<type>[\[{<]*[A-Za-z0-9]+(?::[A-Za-z0-9,]+)?[\]}>]*)"
    r"(?:@(?P<go>[A-Za-z.]+))?(?:\^(?P<parent>[A-Za-z]+))?"
    r"(?P<filled>!?)(?P<optional>\??)(?P<required>\*?)(?P<default>/[^~]*)?(?P<merges>~(?P<key>[A-Za-z0-9]*)(?P<retains>\+?)(?P<replaces>=?))?"
)
_ZERO: Mapping[str, object] = {"string": "", "integer": 0, "boolean": False}


class Types:
    """The types of one package. They refer to each other, and to those of ``uses``, by bare name.

    ``docs`` are modules with structs of the same names, whose docstrings describe types that ``texts`` does not.
    """

    def __init__(
        self,
        package: str,
        text: str,
        *,
        numbers: str = "",
        texts: str = "",
        docs: Sequence[ModuleType] = (),
        uses: Sequence["Types"] = (),
    ) -> None:
        self.package = package
        self.uses = tuple(uses)
        self.descriptions = docstrings.Descriptions(texts, docs)
        self._lines = {line.partition(":")[0].rstrip("!"): line for line in lines(text)}
        self._numbers = {line.partition(":")[0]: line.partition(":")[2] for line in lines(numbers)}
        self._types: dict[str, model.Object] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._lines

    def names(self) -> tuple[str, ...]:
        return tuple(self._lines)

    def object(self, name: str) -> model.Object:
        """The type of that name, made once; KeyError where neither this package nor those it uses have it."""
        if name in self._types:
            return self._types[name]
        if name not in self._lines:
            return next((each for each in self.uses if name in each), _Nothing()).object(name)
        head, _, rest = self._lines[name].partition(":")
        fields: dict[str, model.Field] = {}
        made = model.Object(
            self.package,
            name,
            fields,
            atomic=head.endswith("!"),
            message=self.message(name),
            description=self.descriptions.of_type(name),
        )
        # Known before its fields are, because it may refer to itself.
        self._types[name] = made
        for text in rest.split():
            field = self.field(text, owner=name)
            fields[field.name] = field
        return made

    def message(self, name: str) -> model.Message:
        """The field numbers of a type or of a part of one; empty where there are none."""
        if name in self._numbers:
            return fieldnumbers.read(self._numbers[name], self.message)
        user = next((each for each in self.uses if each.message(name)), None)
        return user.message(name) if user is not None else {}

    def field(self, text: str, *, owner: str = "") -> model.Field:
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
            # Required fields have no omitempty in Go: a scalar is written although it is zero, a pointer is not.
            filled=bool(match["filled"]) or (required and isinstance(kind, model.Scalar) and not match["optional"]),
            nulled=bool(match["filled"]) and (_is_null(kind) or bool(match["optional"])),
            optional=bool(match["optional"]),
            default=_default(kind, match["default"], required=required),
            merges=bool(match["merges"]) and isinstance(kind, model.ListOf),
            merge_key=match["key"] or (keys[0] if keys and match["merges"] else ""),
            replaces=bool(match["replaces"]),
            retains_keys=bool(match["retains"]),
            go_type=match["go"] or "",
            go_parent=match["parent"] or "",
            description=self.descriptions.of_field(owner, match["name"]),
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


class _Nothing:
    """Where a type is looked for that nobody has."""

    def object(self, name: str) -> model.Object:
        raise KeyError(name)


def lines(text: str) -> Iterator[str]:
    """The lines of a notation; indented ones belong to the one before."""
    line = ""
    for raw in [*text.splitlines(), ""]:
        if raw.startswith(" ") and line:
            line += raw
            continue
        if line:
            yield line
        line = raw.strip()


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
