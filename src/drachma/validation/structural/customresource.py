"""Objects of a custom resource: pruning, defaults and checks, in the order and with the messages of upstream.

There is one :class:`Structure` for each version of a definition. Stored objects are read through it as well as those
that clients write: the schema may have new defaults since, or fewer fields.

The result for a field of an object, such as its spec, depends on that field alone. So fields are read and checked one
by one, through :mod:`derivation`, which may reuse results; an object with an error is checked as a whole.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from drachma.validation import fielderror
from drachma.validation.fielderror import FieldError, Reason
from drachma.validation.path import ROOT
from drachma.validation.structural import correlation, embedded, listtypes, pruning, rules, values
from drachma.validation.structural.correlation import NOTHING
from drachma.validation.structural.rules import Rules, Sound
from drachma.validation.structural.schema import Schema


def default(value: Any, schema: Schema | None) -> Any:
    """A value with the defaults of its schema, at every level that is there once those above are filled in."""
    if schema is None or not schema.has_defaults:
        return value
    kind = value.__class__
    if kind is dict:
        result = dict(value)
        for name, part in schema.properties.items():
            if part.has_default and (name not in result or (result[name] is None and not part.nullable)):
                result[name] = part.default
        for name, each in result.items():
            if name in schema.properties:
                result[name] = default(each, schema.properties[name])
            elif schema.value is not None:
                result[name] = default(_or_default(each, schema.value), schema.value)
        return result
    if kind is list and schema.item is not None:
        return [default(_or_default(each, schema.item), schema.item) for each in value]
    return value


def _or_default(value: Any, schema: Schema) -> Any:
    if value is None and not schema.nullable:
        return schema.default if schema.has_default else None
    return value


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
    """Reader and checker of objects by a schema; with ``keeps_all`` nothing is pruned, as without a schema."""

    def __init__(self, schema: Schema, *, keeps_all: bool = False, derive: rules.Derive = rules.afresh) -> None:
        self.schema: Final = schema
        self._rules: Final = Rules(schema, derive=derive)
        self._derive: Final = derive
        self._status: Final = schema.properties.get("status")
        self._keeps_all: Final = keeps_all
        self._fields: Final = schema.properties.keys() - _ENVELOPE

    def deriving(self, derive: rules.Derive) -> "Structure":
        """Return a structure that derives the results for fields in another way."""
        return Structure(self.schema, keeps_all=self._keeps_all, derive=derive)

    def read(self, document: Document) -> Read:
        """Return an object that a client wrote: pruned, without nulls that are not allowed, and with defaults.

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
        document_read, dropped = self._read({**document, **dict.fromkeys(fields, _EMPTY)})
        for name, reader in fields.items():
            document_read[name] = reader.document
            if reader.dropped:
                dropped = sorted([*dropped, *reader.dropped])
        return Read(document_read, dropped)

    def _read_field(self, value: Document, name: str) -> Read:
        """Return a field of an object as :meth:`read` does."""
        schema = self.schema.properties[name]
        if schema.has_embedded_resources:
            # Errors of embedded resources have the whole path.
            result = self._read({name: value})
            return Read(result.document[name], result.dropped)
        result = self._read_part(value, schema)
        return Read(result.document, [f"{name}.{path}" for path in result.dropped])

    def _read_part(self, value: Document, schema: Schema) -> Read:
        """Return a part of a field as :meth:`read` does; there are no embedded resources in it."""
        if schema.preserves_unknown_fields:
            return self._settled(value, schema)
        remainder, dropped = dict(value), list[str]()
        parts: Document = {}
        for name, each in value.items():
            part = schema.field(name)
            if part is None:
                continue
            if each.__class__ is dict:
                parts[name], paths = self._derive(each, self._read_part, part)
                remainder[name] = _EMPTY
                dropped += [f"{name}.{path}" for path in paths]
            elif _is_list_of_objects(each, part):
                items = [self._derive(item, self._read_part, part.item) for item in each]
                parts[name], remainder[name] = [item.document for item in items], []
                dropped += [f"{name}[{place}].{path}" for place, item in enumerate(items) for path in item.dropped]
        document, paths = Read(remainder, ()) if _is_settled(remainder, schema) else self._settled(remainder, schema)
        document.update(parts)
        return Read(value if correlation.same(document, value) else document, [*paths, *dropped])

    def _settled(self, value: Document, schema: Schema) -> Read:
        dropped: Sequence[str] = ()
        if not self._keeps_all:
            value, dropped = pruning.prune(value, schema)
        return Read(default(pruning.drop_nulls(value, schema), schema), dropped)

    def _read(self, document: Document) -> Read:
        schema = self.schema
        dropped: Sequence[str] = ()
        if not self._keeps_all:
            document, dropped = pruning.prune(document, schema, is_resource=True)
        document = embedded.coerce(document, schema, ROOT)
        document = pruning.drop_nulls(document, schema)
        return Read(default(document, schema), dropped)

    def pruned(self, document: Document) -> Document:
        """Return an object of another version without the fields that this version lacks."""
        if self._keeps_all:
            return document
        result: Document = pruning.prune(document, self.schema, is_resource=True)[0]
        return result

    # Checks

    def check(self, document: Document, *, also: Sequence[FieldError] = ()) -> Sequence[FieldError]:
        """Return the errors of a new object; ``also`` are errors of its form that the caller found."""
        sound = self._sound(document)
        remainder = _without(document, sound)
        errors = [*values.check(self.schema, document, sound=_fields(document, sound)), *also]
        errors += embedded.check(remainder, self.schema, ROOT)
        errors += listtypes.check(remainder, self.schema, ROOT)
        return self._check_rules(document, errors, sound)

    def check_update(
        self, document: Document, old: Document, warnings: list[str], *, also: Sequence[FieldError] = ()
    ) -> Sequence[FieldError]:
        """Return the errors of an object that replaces another."""
        sound = self._sound(document, old)
        remainder = _without(document, sound)
        errors = [*values.check(self.schema, document, old=old, sound=_fields(document, sound)), *also]
        errors += embedded.check(remainder, self.schema, ROOT)
        errors += self._repetitions(remainder, old)
        return self._check_rules(document, errors, sound, old=old, warnings=warnings)

    def check_status(
        self, document: Document, old: Document, warnings: list[str], *, also: Sequence[FieldError] = ()
    ) -> Sequence[FieldError]:
        """Return the errors of an object of which only the status has changed."""
        sound = self._sound(document, old)
        errors: list[FieldError] = []
        if "status" in document and self._status is not None and "status" not in sound:
            before = old.get("status", NOTHING)
            errors += values.check(self._status, document["status"], old=before, prefix="status")
        errors += also
        errors += self._repetitions(_without(document, sound), old)
        return self._check_rules(document, errors, sound, old=old, warnings=warnings)

    def _repetitions(self, document: Document, old: Document) -> fielderror.Errors:
        """Yield errors of repeated items in lists, unless the old object had repeated items."""
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
        """Return the fields without errors."""
        derive, sound = self._derive, {}
        for name, value in document.items():
            if value.__class__ is not dict or name not in self._fields:
                continue
            cost = derive(value, self._own_cost, self.schema.properties[name])
            if cost is None:
                continue
            unchanged = None
            if old is not None and name in old and correlation.same(value, old[name]):
                unchanged = derive(value, self._unchanged_cost, name)
            sound[name] = Sound(cost + (unchanged or 0), stays=unchanged is not None)
        return sound

    def _own_cost(self, value: Any, schema: Schema) -> int | None:
        """Return the cost of the rules of a valid value, or None if the value has errors."""
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
        bare = schema.derive(_drop_items)
        return None if values.check(bare, value) or _is_repetitive(value, bare) else cost

    def _cost_of_part(self, value: Any, schema: Schema) -> int | None:
        if value.__class__ is dict:
            return self._derive(value, self._own_cost, schema)
        if value.__class__ is list:
            return self._own_cost(value, schema)
        return None if values.check(schema, value) else self._rules.own_cost(value, schema)

    def _unchanged_cost(self, value: Document, name: str) -> int | None:
        """Return the cost of the transition rules of an unchanged field, or None if one fails."""
        return self._rules.unchanged_cost(value, name)

    def _check_rules(
        self,
        document: Document,
        errors: list[FieldError],
        sound: Mapping[str, Sound],
        *,
        old: Any = NOTHING,
        warnings: list[str] | None = None,
    ) -> Sequence[FieldError]:
        """Return the errors of the form and of the rules, which are only evaluated on objects of the right form."""
        if not self.schema.has_rules:
            return errors
        if any(error.type in _BLOCKING for error in errors):
            return [*errors, _UNCHECKED]
        return [*errors, *self._rules.check(document, old=old, warnings=warnings, sound=sound)]


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
    """Return True if a schema has conditions on several parts of a value together."""
    return bool(
        schema.any_of
        or schema.one_of
        or schema.all_of
        or schema.negation is not None
        or schema.is_embedded_resource
        or schema.enum
    )


def _is_settled(value: Document, schema: Schema) -> bool:
    """Return True if a quick look shows that nothing has to be dropped from a value, and no default is missing."""
    return schema.properties.keys() >= value.keys() >= schema.derive(_names_with_defaults) and not any(
        each is None or (each and (each.__class__ is dict or each.__class__ is list)) for each in value.values()
    )


def _names_with_defaults(schema: Schema) -> frozenset[str]:
    return frozenset(name for name, part in schema.properties.items() if part.has_default)


def _drop_items(schema: Schema) -> Schema:
    """Return the schema of a list without that of its items."""
    return schema.changed(items=None)


def _is_repetitive(value: Any, schema: Schema) -> bool:
    return _any(listtypes.check(value, schema, ROOT))


def _any(errors: fielderror.Errors) -> bool:
    return next(errors, None) is not None
