"""Objects of a custom resource: made complete, and checked, in the order and with the messages of upstream.

There is one :class:`Structure` for each version of a definition. What is stored is read through it as well as what
clients write: the schema may have got new defaults since, or lost fields.

What is read of a field of an object such as its spec, and whether anything is wrong with it, follows from that field
alone. That is asked apart, by way of :mod:`derivation`; where something is wrong the object is looked at as a whole.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from drachma.validation import fielderror
from drachma.validation.fielderror import FieldError, Reason
from drachma.validation.path import ROOT
from drachma.validation.structural import correlation, defaults, derivation, embedded, listtypes, pruning, values
from drachma.validation.structural.correlation import NOTHING
from drachma.validation.structural.rules import Rules, Sound
from drachma.validation.structural.schema import Schema

_BLOCKING: Final = frozenset(
    {Reason.NOT_SUPPORTED, Reason.REQUIRED, Reason.TOO_LONG, Reason.TOO_MANY, Reason.TYPE_INVALID}
)
_UNCHECKED: Final = FieldError(
    Reason.INVALID,
    values.NO_FIELD,
    None,
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)

Document = dict[str, Any]

_ENVELOPE: Final = frozenset({"apiVersion", "kind", "metadata"})
_EMPTY: Final[Document] = {}


class Read(NamedTuple):
    """An object in the form that is kept, and the paths of fields that its schema does not have."""

    document: Document
    dropped: Sequence[str]


class Structure:
    """What a schema makes of objects. ``keeps_all``: nothing is pruned, as in definitions from before schemas."""

    def __init__(
        self, schema: Schema, *, keeps_all: bool = False, derive: derivation.Derive = derivation.afresh
    ) -> None:
        self.schema: Final = schema
        self._rules: Final = Rules(schema, derive=derive)
        self._derive: Final = derive
        self._status: Final = schema.properties.get("status")
        self._keeps_all: Final = keeps_all
        self._fields: Final = schema.properties.keys() - _ENVELOPE

    def deriving(self, derive: derivation.Derive) -> "Structure":
        """The same for somebody who knows a way to what follows from fields."""
        return Structure(self.schema, keeps_all=self._keeps_all, derive=derive)

    def read(self, document: Document) -> Read:
        """An object that a client wrote: pruned, without nulls that may not be, and with defaults.

        Raises:
            errors.InvalidValueError: metadata of an embedded resource is malformed.
        """
        derive = self._derive
        fields = {
            name: derive(value, self._read_field, name)
            for name, value in document.items()
            if value.__class__ is dict and name in self._fields
        }
        if not fields:
            return self._read(document)
        # The rest with empty fields in their places.
        whole, dropped = self._read({**document, **dict.fromkeys(fields, _EMPTY)})
        for name, read in fields.items():
            whole[name] = read.document
            if read.dropped:
                dropped = sorted([*dropped, *read.dropped])
        return Read(whole, dropped)

    def _read_field(self, value: Document, name: str) -> Read:
        """A field by itself."""
        schema = self.schema.properties[name]
        if schema.has_embedded_resources:
            # What is wrong with those is said with the whole path.
            read = self._read({name: value})
            return Read(read.document[name], read.dropped)
        read = self._read_part(value, schema)
        return Read(read.document, [f"{name}.{path}" for path in read.dropped])

    def _read_part(self, value: Document, schema: Schema) -> Read:
        """The same for what is anywhere in one, where there are no embedded resources."""
        if schema.preserves_unknown_fields:
            return self._settled(value, schema)
        rest, dropped = dict(value), list[str]()
        parts: Document = {}
        for name, each in value.items():
            part = schema.field(name)
            if part is None:
                continue
            if each.__class__ is dict:
                parts[name], paths = self._derive(each, self._read_part, part)
                rest[name] = _EMPTY
                dropped += [f"{name}.{path}" for path in paths]
            elif _is_list_of_objects(each, part):
                items = [self._derive(item, self._read_part, part.item) for item in each]
                parts[name], rest[name] = [item.document for item in items], []
                dropped += [f"{name}[{place}].{path}" for place, item in enumerate(items) for path in item.dropped]
        document, paths = Read(rest, ()) if _is_settled(rest, schema) else self._settled(rest, schema)
        document.update(parts)
        return Read(value if correlation.same(document, value) else document, [*paths, *dropped])

    def _settled(self, value: Document, schema: Schema) -> Read:
        dropped: Sequence[str] = ()
        if not self._keeps_all:
            value, dropped = pruning.prune(value, schema)
        return Read(defaults.default(pruning.without_nulls(value, schema), schema), dropped)

    def _read(self, document: Document) -> Read:
        schema = self.schema
        dropped: Sequence[str] = ()
        if not self._keeps_all:
            document, dropped = pruning.prune(document, schema, is_resource=True)
        document = embedded.coerce(document, schema, ROOT)
        document = pruning.without_nulls(document, schema)
        return Read(defaults.default(document, schema), dropped)

    def pruned(self, document: Document) -> Document:
        """An object of another version without the fields that this one does not have."""
        if self._keeps_all:
            return document
        kept: Document = pruning.prune(document, self.schema, is_resource=True)[0]
        return kept

    # Checks

    def check(self, document: Document, *, also: Sequence[FieldError] = ()) -> Sequence[FieldError]:
        """What is wrong with a new object; ``also`` is what others have against its form."""
        sound = self._sound(document)
        rest = _without(document, sound)
        found = [*values.check(self.schema, document, sound=_fields(document, sound)), *also]
        found += embedded.check(rest, self.schema, ROOT)
        found += listtypes.check(rest, self.schema, ROOT)
        return self._checked(document, found, sound)

    def check_update(
        self, document: Document, old: Document, warnings: list[str], *, also: Sequence[FieldError] = ()
    ) -> Sequence[FieldError]:
        """What is wrong with an object that takes the place of another."""
        sound = self._sound(document, old)
        rest = _without(document, sound)
        found = [*values.check(self.schema, document, old=old, sound=_fields(document, sound)), *also]
        found += embedded.check(rest, self.schema, ROOT)
        found += self._repetitions(rest, old)
        return self._checked(document, found, sound, old=old, warnings=warnings)

    def check_status(
        self, document: Document, old: Document, warnings: list[str], *, also: Sequence[FieldError] = ()
    ) -> Sequence[FieldError]:
        """The same for an object of which only the status has changed."""
        sound = self._sound(document, old)
        found: list[FieldError] = []
        if "status" in document and self._status is not None and "status" not in sound:
            before = old.get("status", NOTHING)
            found += values.check(self._status, document["status"], old=before, prefix="status")
        found += also
        found += self._repetitions(_without(document, sound), old)
        return self._checked(document, found, sound, old=old, warnings=warnings)

    def _repetitions(self, document: Document, old: Document) -> fielderror.Errors:
        """Items of lists that are there twice; where some were before, there may be others."""
        if not any(self._is_repetitive_in(name, value) for name, value in old.items()):
            yield from listtypes.check(document, self.schema, ROOT)

    def _is_repetitive_in(self, name: str, value: Any) -> bool:
        schema = self.schema.field(name)
        if schema is None or not schema.has_identities:
            return False
        if value.__class__ is dict and name in self._fields:
            return self._derive(value, _is_repetitive, schema)
        return _is_repetitive(value, schema)

    def _sound(self, document: Document, old: Document | None = None) -> Mapping[str, Sound]:
        """The fields with which nothing is wrong."""
        derive, sound = self._derive, {}
        for name, value in document.items():
            if value.__class__ is not dict or name not in self._fields:
                continue
            cost = derive(value, self._own_cost, self.schema.properties[name])
            if cost is None:
                continue
            standing = None
            if old is not None and name in old and correlation.same(value, old[name]):
                standing = derive(value, self._standing_cost, name)
            sound[name] = Sound(cost + (standing or 0), stays=standing is not None)
        return sound

    def _own_cost(self, value: Any, schema: Schema) -> int | None:
        """What rules cost that have nothing against a value by itself; None where something is wrong with it."""
        if _is_indivisible(schema):
            if (
                values.check(schema, value)
                or _is_repetitive(value, schema)
                or _any(embedded.check(value, schema, ROOT))
            ):
                return None
            return self._rules.whole_cost(value, schema)
        cost = self._cost_of_fields(value, schema) if value.__class__ is dict else self._cost_of_items(value, schema)
        own = self._rules.own_cost(value, schema) if cost is not None else None
        return None if cost is None or own is None else cost + own

    def _cost_of_fields(self, value: Document, schema: Schema) -> int | None:
        cost, sound = 0, {}
        for name, each in value.items():
            part = schema.field(name)
            if part is None:
                continue
            if each.__class__ is dict or each.__class__ is list:
                sound[name] = each
            elif not part.rules:
                continue
            below = self._cost_of_part(each, part)
            if below is None:
                return None
            cost += below
        return None if values.check(schema, value, sound=sound) else cost

    def _cost_of_items(self, value: list[Any], schema: Schema) -> int | None:
        cost = 0
        if schema.item is not None:
            for each in value:
                below = self._cost_of_part(each, schema.item)
                if below is None:
                    return None
                cost += below
        bare = schema.derive(_without_items)
        return None if values.check(bare, value) or _is_repetitive(value, bare) else cost

    def _cost_of_part(self, value: Any, schema: Schema) -> int | None:
        if value.__class__ is dict:
            return self._derive(value, self._own_cost, schema)
        if value.__class__ is list:
            return self._own_cost(value, schema)
        return None if values.check(schema, value) else self._rules.own_cost(value, schema)

    def _standing_cost(self, value: Document, name: str) -> int | None:
        """The same for rules about changes, where it is what it was."""
        return self._rules.standing_cost(value, name)

    def _checked(
        self,
        document: Document,
        found: list[FieldError],
        sound: Mapping[str, Sound],
        *,
        old: Any = NOTHING,
        warnings: list[str] | None = None,
    ) -> Sequence[FieldError]:
        """What was found, and what rules find: they are only asked about objects of the right form."""
        if not self.schema.has_rules:
            return found
        if any(error.type in _BLOCKING for error in found):
            return [*found, _UNCHECKED]
        return [*found, *self._rules.check(document, old=old, warnings=warnings, sound=sound)]


def _fields(document: Document, names: Mapping[str, Sound]) -> Document:
    return {name: document[name] for name in names}


def _without(document: Document, names: Mapping[str, Sound]) -> Document:
    return {name: value for name, value in document.items() if name not in names}


def _is_list_of_objects(value: Any, schema: Schema) -> bool:
    return (
        value.__class__ is list
        and schema.item is not None
        and not schema.preserves_unknown_fields
        and all(each.__class__ is dict for each in value)
    )


def _is_indivisible(schema: Schema) -> bool:
    """Whether more than one part of a value counts in a condition of its schema."""
    return bool(
        schema.any_of
        or schema.one_of
        or schema.all_of
        or schema.negation is not None
        or schema.is_embedded_resource
        or schema.enum
    )


def _is_settled(value: Document, schema: Schema) -> bool:
    """Whether it is easy to see that there is nothing to be dropped from a value, and nothing to be filled in."""
    return schema.properties.keys() >= value.keys() >= schema.derive(_names_with_defaults) and not any(
        each is None or (each and (each.__class__ is dict or each.__class__ is list)) for each in value.values()
    )


def _names_with_defaults(schema: Schema) -> frozenset[str]:
    return frozenset(name for name, part in schema.properties.items() if part.has_default)


def _without_items(schema: Schema) -> Schema:
    """What a schema says about a list but not about what is in it."""
    return schema.changed(items=None)


def _is_repetitive(value: Any, schema: Schema) -> bool:
    return _any(listtypes.check(value, schema, ROOT))


def _any(errors: fielderror.Errors) -> bool:
    return next(errors, None) is not None
