"""Rules for the defaults in a schema: the schema itself must accept them."""

import contextlib
from typing import Any, Final

from drachma import errors
from drachma.validation import fielderror
from drachma.validation.fielderror import FieldError
from drachma.validation.path import ROOT, Path
from drachma.validation.structural import correlation, embedded, pruning, rules, values
from drachma.validation.structural.correlation import NOTHING
from drachma.validation.structural.schema import Schema

_META: Final = frozenset({"metadata", "kind", "apiVersion"})


class _ExhaustedError(Exception):
    """Rules have used up their budget; never leaves this module."""


def check(schema: Schema, at: Path) -> list[FieldError]:
    """Return the errors of the defaults in the schema of a resource."""
    checker = _Checker()
    with contextlib.suppress(_ExhaustedError):
        checker.visit(schema.resource_schema, at, is_metadata=False, is_root=True)
    return checker.found


class _Checker:
    def __init__(self) -> None:
        self.found: list[FieldError] = []
        self._budget = rules.BUDGET

    def visit(self, schema: Schema, at: Path, *, is_metadata: bool, is_root: bool) -> None:
        if schema.is_embedded_resource:
            is_metadata = False
        if schema.has_default:
            self._check(schema, at.child("default"), is_metadata=is_metadata, is_root=is_root)
        if schema.item is not None:
            self.visit(schema.item, at.child("items"), is_metadata=is_metadata, is_root=False)
        for name, part in schema.properties.items():
            is_meta = is_metadata or (schema.is_embedded_resource and name in _META)
            self.visit(part, at.child("properties").key(name), is_metadata=is_meta, is_root=False)

    def _check(self, schema: Schema, at: Path, *, is_metadata: bool, is_root: bool) -> None:
        value = schema.default
        if not is_metadata:
            pruned, _ = pruning.prune(value, schema, is_resource=schema.is_embedded_resource)
            if not correlation.same(pruned, value):
                self.found.append(fielderror.invalid(at, value, "must not have unknown fields"))
            problem = self._embedded(value, schema, at)
            if problem:
                self.found += problem
                return
        form = values.check(schema, value, prefix=str(at))
        if form:
            self.found += form
            return
        self._check_rules(schema, value, at, is_root=is_root)

    def _embedded(self, value: Any, schema: Schema, at: Path) -> list[FieldError]:
        try:
            embedded.coerce({"value": value}, Schema(properties={"value": schema}), ROOT)
        except errors.InvalidValueError as error:
            return [fielderror.invalid(at, value, str(error))]
        return list(embedded.check(value, schema, at))

    def _check_rules(self, schema: Schema, value: Any, at: Path, *, is_root: bool) -> None:
        """Check that rules accept a default as an old and as a new value."""
        checked = rules.Rules(schema, is_resource=is_root)
        problems, remaining_budget = checked.check_part(value, at, old=value, budget=self._budget)
        self.found += problems
        if not problems:
            problems, fresh = checked.check_part(value, at, old=NOTHING, budget=self._budget)
            self.found += problems
            remaining_budget = min(remaining_budget, fresh)
        self._budget = remaining_budget
        if remaining_budget < 0:
            raise _ExhaustedError
