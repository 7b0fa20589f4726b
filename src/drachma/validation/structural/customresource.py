"""Objects of a custom resource: made complete, and checked, in the order and with the messages of upstream.

There is one :class:`Structure` for each version of a definition. What is stored is read through it as well as what
clients write: the schema may have got new defaults since, or lost fields.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from drachma.validation import fielderror
from drachma.validation.fielderror import FieldError, Reason
from drachma.validation.path import ROOT
from drachma.validation.structural import defaults, embedded, listtypes, pruning, values
from drachma.validation.structural.correlation import NOTHING
from drachma.validation.structural.rules import Rules
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


class Read(NamedTuple):
    """An object in the form that is kept, and the paths of fields that its schema does not have."""

    document: Document
    dropped: Sequence[str]


class Structure:
    """What a schema makes of objects. ``keeps_all``: nothing is pruned, as in definitions from before schemas."""

    def __init__(self, schema: Schema, *, keeps_all: bool = False) -> None:
        self.schema: Final = schema
        self._rules: Final = Rules(schema)
        self._status: Final = schema.properties.get("status")
        self._keeps_all: Final = keeps_all

    def read(self, document: Document) -> Read:
        """An object that a client wrote: pruned, without nulls that may not be, and with defaults.

        Raises:
            errors.InvalidValueError: metadata of an embedded resource is malformed.
        """
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
        return self._checked(document, [*values.check(self.schema, document), *also, *self._lists(document)])

    def check_update(
        self, document: Document, old: Document, warnings: list[str], *, also: Sequence[FieldError] = ()
    ) -> Sequence[FieldError]:
        """What is wrong with an object that takes the place of another."""
        found = [*values.check(self.schema, document, old=old), *also]
        found += embedded.check(document, self.schema, ROOT)
        if not _any(listtypes.check(old, self.schema, ROOT)):
            found += listtypes.check(document, self.schema, ROOT)
        return self._checked(document, found, old=old, warnings=warnings)

    def check_status(
        self, document: Document, old: Document, warnings: list[str], *, also: Sequence[FieldError] = ()
    ) -> Sequence[FieldError]:
        """The same for an object of which only the status has changed."""
        found: list[FieldError] = []
        if "status" in document and self._status is not None:
            before = old.get("status", NOTHING)
            found += values.check(self._status, document["status"], old=before, prefix="status")
        found += also
        if not _any(listtypes.check(old, self.schema, ROOT)):
            found += listtypes.check(document, self.schema, ROOT)
        return self._checked(document, found, old=old, warnings=warnings)

    def _lists(self, document: Document) -> Sequence[FieldError]:
        return [*embedded.check(document, self.schema, ROOT), *listtypes.check(document, self.schema, ROOT)]

    def _checked(
        self, document: Document, found: list[FieldError], *, old: Any = NOTHING, warnings: list[str] | None = None
    ) -> Sequence[FieldError]:
        """What was found, and what rules find: they are only asked about objects of the right form."""
        if not self.schema.has_rules:
            return found
        if any(error.type in _BLOCKING for error in found):
            return [*found, _UNCHECKED]
        return [*found, *self._rules.check(document, old=old, warnings=warnings)]


def _any(errors: fielderror.Errors) -> bool:
    return next(errors, None) is not None
