"""Expressions of admission: match conditions, validations, messages, audit annotations and mutations.

They look at an ``object`` and the ``oldObject`` that it replaces, at the ``request``, at the ``namespaceObject`` that
it is in, and where there are some at ``params``, ``variables`` and an ``authorizer``. A :class:`Compiler` compiles the
expressions of one policy: its variables in their order, each of which may use those before it, and then everything
that uses them. Mutations can make objects and patches (:mod:`drachma.cel.patches`), other expressions cannot. Objects
are of any type, unless their types are given so that expressions can be checked against them.

Validation compiles what is being written, admission what was stored; both through here.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from drachma.cel import declarations, environment, lexer, patches, program, types
from drachma.cel.environment import Expressions
from drachma.cel.runtime import authorizers

OBJECT: Final = "object"
OLD_OBJECT: Final = "oldObject"
PARAMS: Final = "params"
REQUEST: Final = "request"
NAMESPACE_OBJECT: Final = "namespaceObject"
AUTHORIZER: Final = "authorizer"
REQUEST_RESOURCE: Final = "authorizer.requestResource"
VARIABLES: Final = "variables"

Fields = Mapping[str, types.Type]

_TEXTS: Final = types.list_of(types.STRING)
_LABELS: Final = types.map_of(types.STRING, types.STRING)


def _object(name: str, fields: str = "", **others: types.Type) -> tuple[str, Fields]:
    return f"kubernetes.{name}", {**dict.fromkeys(fields.split(), types.STRING), **others}


def _type(name: str) -> types.Type:
    return types.object_type(f"kubernetes.{name}")


_REQUEST_TYPES: Final[Mapping[str, Fields]] = dict(
    (
        _object("GroupVersionKind", "group version kind"),
        _object("GroupVersionResource", "group version resource"),
        _object("UserInfo", "username uid", groups=_TEXTS, extra=types.map_of(types.STRING, _TEXTS)),
        _object(
            "AdmissionRequest",
            "subResource requestSubResource name namespace operation",
            kind=_type("GroupVersionKind"),
            resource=_type("GroupVersionResource"),
            requestKind=_type("GroupVersionKind"),
            requestResource=_type("GroupVersionResource"),
            userInfo=_type("UserInfo"),
            dryRun=types.BOOL,
            options=types.DYN,
        ),
        _object("NamespaceSpec", finalizers=_TEXTS),
        _object("NamespaceCondition", "status type message reason", lastTransitionTime=types.TIMESTAMP),
        _object("NamespaceStatus", "phase", conditions=types.list_of(_type("NamespaceCondition"))),
        _object(
            "NamespaceMetadata",
            "name generateName namespace UID resourceVersion",
            labels=_LABELS,
            annotations=_LABELS,
            creationTimestamp=types.TIMESTAMP,
            deletionGracePeriodSeconds=types.INT,
            deletionTimestamp=types.TIMESTAMP,
            generation=types.INT,
            finalizers=_TEXTS,
        ),
        _object(
            "Namespace",
            metadata=_type("NamespaceMetadata"),
            spec=_type("NamespaceSpec"),
            status=_type("NamespaceStatus"),
        ),
    )
)
_VARIABLES_TYPE: Final = _type(VARIABLES)

# What of a variable's type the expressions after it know, as upstream: the rest they only meet when they run.
_KEPT: Final = frozenset(
    (
        *(types.ANY, types.BOOL, types.BYTES, types.DOUBLE, types.DURATION, types.INT, types.NULL),
        *(types.STRING, types.TIMESTAMP, types.UINT),
    )
)


_IDENTIFIER: Final = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")


class Subjects(NamedTuple):
    """The types of ``object`` and ``params`` where they are known, and the object types that these refer to."""

    object: types.Type = types.DYN
    params: types.Type = types.DYN
    objects: Mapping[str, Fields] = {}


ANYTHING: Final = Subjects()


class Dialect(NamedTuple):
    """Variables and functions of expressions in one place, in addition to the request and its objects."""

    params: bool = False
    authorizer: bool = True
    patches: bool = False


def is_identifier(name: str) -> bool:
    """Return True if a variable can have this name."""
    return _IDENTIFIER.fullmatch(name) is not None and name not in lexer.RESERVED


class Compiler:
    """Compiles the expressions of one policy or webhook. Without ``composes`` there are no variables to speak of."""

    def __init__(self, *, has_params: bool, composes: bool, subjects: Subjects = ANYTHING) -> None:
        self._has_params: Final = has_params
        self._subjects: Final = subjects
        self._fields: dict[str, types.Type] | None = {} if composes else None

    def declare(
        self, name: str, expression: str, *, expressions: Expressions = Expressions.STORED
    ) -> program.Program | program.CompilationError:
        """Return a variable, which those that follow can use; one that does not compile is of any type for them."""
        assert self._fields is not None, "only who composes has variables"
        compiled: program.Program | program.CompilationError
        try:
            compiled = self.compile(expression, expressions=expressions)
        except program.CompilationError as error:
            # A policy keeps it: without the frames that raised it, and what their request holds.
            compiled = program.CompilationError(str(error), internal=error.internal)
        self._fields[name] = types.DYN if isinstance(compiled, program.CompilationError) else _kept(compiled.result)
        return compiled

    def compile(
        self,
        expression: str,
        *results: types.Type,
        authorizer: bool = True,
        expressions: Expressions = Expressions.STORED,
    ) -> program.Program:
        """Return the program of an expression that gives one of the results, or anything where none are named.

        Raises:
            program.CompilationError: it does not compile, or gives something else.
        """
        dialect = Dialect(self._has_params, authorizer, not patches.RESULTS.isdisjoint(results))
        compiled = program.compile_expression(expression, self._environment(dialect, expressions))
        if results and compiled.result not in results:
            raise program.CompilationError(_mismatch(compiled.result, results))
        return compiled

    def _environment(self, dialect: Dialect, expressions: Expressions) -> environment.Environment:
        if self._fields is None and self._subjects is ANYTHING:
            return _plain(dialect, expressions)
        return _environment(dialect, expressions, self._subjects, fields=self._fields)


def _kept(result: types.Type) -> types.Type:
    if result in _KEPT:
        return result
    match result.kind, result.params:
        case types.Kind.LIST, (element,):
            return types.list_of(_kept(element))
        case types.Kind.MAP, (key, value):
            return types.map_of(_kept(key), _kept(value))
    return types.DYN


def _mismatch(result: types.Type, results: tuple[types.Type, ...]) -> str:
    if len(results) == 1:
        return f"must evaluate to {results[0].declared_name} but got {result.declared_name}"
    expected_types = " ".join(each.declared_name for each in results)
    return f"must evaluate to one of [{expected_types}] but got {result.declared_name}"


def _environment(
    dialect: Dialect, expressions: Expressions, subjects: Subjects, *, fields: Mapping[str, types.Type] | None
) -> environment.Environment:
    variables = {
        OBJECT: subjects.object,
        OLD_OBJECT: subjects.object,
        NAMESPACE_OBJECT: _type("Namespace"),
        REQUEST: _type("AdmissionRequest"),
    }
    objects = {**_REQUEST_TYPES, **subjects.objects}
    if dialect.params:
        variables[PARAMS] = subjects.params
    if dialect.authorizer:
        variables[AUTHORIZER] = declarations.parse_type(authorizers.AUTHORIZER)
        variables[REQUEST_RESOURCE] = declarations.parse_type(authorizers.RESOURCE_CHECK)
    if fields is not None:
        variables[VARIABLES] = _VARIABLES_TYPE
        objects[_VARIABLES_TYPE.name] = dict(fields)
    if dialect.patches:
        return environment.base_environment(
            variables, objects, expressions=expressions, functions=patches.FUNCTIONS, messages=patches.find
        )
    return environment.base_environment(variables, objects, expressions=expressions)


@functools.cache
def _plain(dialect: Dialect, expressions: Expressions) -> environment.Environment:
    return _environment(dialect, expressions, ANYTHING, fields=None)
