"""Rules for the expressions of policies and webhooks: they compile, to the right type, in the words of upstream.

An expression that the stored object has already may use all that a newer server accepted; a new one may use only what
every server understands. Expressions are not estimated: what they cost is bounded when they run.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from drachma import cel
from drachma.cel import admission, program, types
from drachma.cel.environment import Expressions
from drachma.validation import collection, fielderror
from drachma.validation.fielderror import Errors, FieldError
from drachma.validation.path import Path
from drachma.values import names

CONDITIONS: Final = 64
"""Limit of the number of match conditions."""


def check_conditions(
    conditions: Sequence[Mapping[str, Any]], at: Path, *, has_params: bool, stored_expressions: Collection[str] = ()
) -> Errors:
    """Yield the errors of match conditions; ``stored`` has the expressions of the stored object."""
    compiler = admission.Compiler(has_params=has_params, composes=False)
    if len(conditions) > CONDITIONS:
        yield fielderror.too_many(at, len(conditions), CONDITIONS)
    for where, condition, name, is_repeated in collection.walk_items(conditions, at):
        text = condition.get("expression", "").strip()
        if not text:
            yield fielderror.required(where.child("expression"))
        else:
            yield from check(
                text, where.child("expression"), compiler, types.BOOL, stored_expressions=stored_expressions
            )
        if not name:
            yield fielderror.required(where.child("name"))
        else:
            yield from fielderror.problems(where.child("name"), name, names.qualified_name(name))
            if is_repeated:
                yield fielderror.duplicate(where.child("name"), name)


def expressions_of(items: Sequence[Mapping[str, Any]] | None, field: str = "expression") -> frozenset[str]:
    """Return the texts of the expressions in a list."""
    return frozenset(each[field] for each in items or () if each.get(field))


def check_variables(variables: Sequence[Mapping[str, Any]], at: Path, compiler: admission.Compiler) -> Errors:
    """Yield the errors of variables, and declare each to the compiler."""
    for position, variable in enumerate(variables):
        where = at.item(position)
        name, text = variable.get("name", ""), variable.get("expression", "")
        if not name.strip():
            yield fielderror.required(where.child("name"), "name is not specified")
        elif not admission.is_identifier(name):
            yield fielderror.invalid(where.child("name"), name, "must be a valid CEL identifier")
        if not text.strip():
            yield fielderror.required(where.child("expression"), "expression is not specified")
            continue
        compiled = compiler.declare(name, text, expressions=Expressions.NEW)
        if isinstance(compiled, program.CompilationError):
            yield _problem(compiled, where.child("expression"), text)


def check(
    text: str,
    at: Path,
    compiler: admission.Compiler,
    *results: types.Type,
    stored_expressions: Collection[str] = (),
    quoted: str | None = None,
    authorizer: bool = True,
) -> Errors:
    """Yield the errors of an expression with one of these result types; messages quote ``shown``, or the text."""
    expressions = Expressions.STORED if text in stored_expressions else Expressions.NEW
    yield from attempt(
        lambda: compiler.compile(text, *results, authorizer=authorizer, expressions=expressions),
        at,
        text if quoted is None else quoted,
    )


def attempt(compile_: Callable[[], program.Program], at: Path, text: str) -> Errors:
    """Yield the error of an expression that does not compile."""
    try:
        compile_()
    except cel.CompilationError as error:
        yield _problem(error, at, text)


def _problem(error: cel.CompilationError, at: Path, text: str) -> FieldError:
    detail = str(error)
    return fielderror.internal(at, detail) if error.internal else fielderror.invalid(at, text, detail)
