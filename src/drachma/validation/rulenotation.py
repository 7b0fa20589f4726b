"""The notation of rules: constraints on fields in upstream's order of errors, and code at the places where it belongs.

The rules of ``x.py`` are in ``x.rules`` next to it, which the module reads once, with :func:`load`. A type has a line
with its name, and below it a line for each rule::

    EndpointPort
        name: dns_label
        port=0: port
        protocol!: SCTP|TCP|UDP
        appProtocol?: qualified_name
        @check_reserved

A field has a mark that says when its value is checked:

=========== ======================================================
``name``    unless it is empty
``name?``   if there is one, even an empty one
``name!``   always; an empty one is "required", with a detail where one is given: ``name!"must be set"``
``name!?``  always; one that is not there is "required"
``name=0``  always; an absent one counts as 0 (or ``{}``, ``[]``, or an empty text: ``name=``)
``name<``   like ``name={}``, and the facts of its rules are the same field of the facts: the old value in an update
=========== ======================================================

Several fields can share a line. A dot leads to a field of a field: ``spec.type``. A dot alone is the value itself.
``~`` in front of a line marks errors that rules declared on upstream's types repeat (:func:`fielderror.merge`).
``name->other`` is reported under another name, ``name->.`` at the value that has the field. After the colon stand
constraints:

============================= ================================================================================
``A|B``                       an enumeration; messages list it in this order (of one value: ``A|``)
``text(A|B)``                 the same for plain texts, which messages quote as Go does
``>=1``, ``<=9``, ``>0``,     numbers; a text in quotes behind one is its message
``1..9``
``max=63``, ``bytes=63``      a text of at most so many characters, or bytes
``items=8``                   a list of at most so many items
``port``                      a function: one of the module, or of :mod:`drachma.validation.constraints`
``EndpointPort``              a value of that type
``[EndpointPort unique name   a list of such values: no two with one name, at most 8 items. ``unique itself`` compares
limit 8]``                    the items; ``unique .name`` reports the item, and not its field; ``first`` reports it
                              before other errors. ``here`` reports the errors of items at the list. ``key name``
                              reports items after the errors of all of them; ``whole`` shows the whole item,
                              ``enum`` a key of an enumeration.
                              ``covered`` is like ``~``, for errors of the list
``forbidden "..."``,          an error, with its message, for every value that is checked. ``invalid`` shows the value;
``required "..."``,           ``invalid(enum)`` shows one of an enumeration, ``invalid(null)`` and ``invalid(empty)``
``invalid "..."``             show null and an empty text, ``invalid(omitted)`` nothing, ``invalid(f)`` what the
                              function f makes of the value; :data:`constraints.FORMS` has all forms
``immutable``                 in the rules of an update: the value stays as it is; shown as by ``invalid``. An empty
                              value counts as an absent one, except with the mark ``?``
============================= ================================================================================

``@check`` is a function of the module for a rule between fields; it is called with the whole value. The underscore in
front of a function's name is left out. Names of other modules of this package have the module in front, for instance
``podspec.tolerations.check``.

Rules can depend on other fields. A condition stands behind a rule, or in front of an indented block::

    if scope = Namespace
        namespace!?: dns_label
    elif scope = Cluster
        namespace?: forbidden "`scope` is 'Cluster'"
    minDomains?: invalid "needs `DoNotSchedule`" if whenUnsatisfiable != DoNotSchedule

Of the fields below ``union "none is there" "there are several"``, exactly one must be there. Its rules apply; the two
texts are the messages for a value without any of them, and for each further one. ``name->shown/further`` is a member
that is reported under two names: as the first one, and as a further one.

=============================== ==============================================================================
``name``, ``name?``             the field is not empty; there is one
``name = A|B``, ``name != A``   the value is one of these; an absent one counts as an empty text, which is ``''``
``name = true``, ``name < 3``   booleans and numbers; an absent number counts as 0
``name# > 1``                   the length of a list, a map or a text
``name > .other``               another field, with a dot in front; ``facts.other`` is one of the facts
``name changed``                it differs from the same field of the facts, as for ``immutable``
``facts``                       there are facts
``@is_local``                   a function of the module that takes the whole value
``not``, ``and``, ``or``, (...) as in Python
=============================== ==============================================================================

Functions take the value and its path. Those with a third parameter are also given facts about the surroundings, with
which the caller checks the outermost type; a condition reads them as fields of ``facts``.

The rules of a kind are the types ``Kind``, ``Kind.create``, ``Kind.update`` and ``Kind.status``
(:class:`drachma.validation.kindrules.KindRules`).
"""

import importlib
import importlib.resources
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

from drachma.validation import constraints, rulecompiler, typerules
from drachma.validation.fielderror import Found
from drachma.validation.path import Path
from drachma.validation.rulecompiler import AnyStep, Block, Comparison, Condition, Rule, Step, Union, takes_facts
from drachma.validation.typerules import Type

_DEFAULTS: Final[Mapping[str, Any]] = {"=": "", "=0": 0, "={}": {}, "=[]": (), "<": {}}
_NARROWING: Final = "<"
_MARKS: Final = {
    "": rulecompiler.OPTIONAL,
    "?": rulecompiler.PRESENT,
    "!": rulecompiler.REQUIRED,
    "!?": rulecompiler.REQUIRED_PRESENT,
}
_NAME: Final = re.compile(
    r"(?P<name>[A-Za-z$](?:[\w.$]|-(?!>))*|\.)(?:->(?P<shown>[\w.$/-]+))?(?P<mark>!\?|[!?<]|=(?:0|\{\}|\[\])?)?"
    r"(?P<detail>\"[^\"]*\"|'[^']*')?\s*"
)
_TOKEN: Final = re.compile(r"\"[^\"]*\"|'[^']*'|\[[^\]]*\]|text\([^)]*\)|[^\s\"']+")
_BOUND: Final = re.compile(r"(>=|<=|>)(-?\d+)")
_RANGE: Final = re.compile(r"(-?\d+)\.\.(\d+)")
_ERROR: Final = re.compile(r"(forbidden|required|invalid|immutable)(?:\(([\w.]+)\))?")
_SUFFIX: Final = re.compile(r"((?:\"[^\"]*\"|'[^']*'|[^\"'])*?) if (.*)")
_CONDITION: Final = re.compile(r"''|[()]|@[\w.]+|[<>!]=|[=<>]|[^\s()=<>!]+")
_OPERATORS: Final = frozenset({"=", "!=", "<", ">", "<=", ">="})
_WORDS: Final = frozenset({"and", "or", "not", "(", ")"})
_SHOWN_REPETITIONS: Final = {"enum": typerules.show_enum, "whole": typerules.show_item}
_LITERALS: Final[Mapping[str, Any]] = {"true": True, "false": False, "''": ""}

_TypeT = TypeVar("_TypeT", bound=Type)
Special = Callable[[str, Callable[[str], Any]], Any]
"""Makes constraints that only some types have, of a token and a function that finds names; None for other tokens."""


def _no_special(token: str, find: Callable[[str], Any]) -> Any:
    return None


def load(name: str, namespace: Mapping[str, Any]) -> dict[str, Type]:
    """Return the types whose rules stand next to a module of that name, by their names.

    ``namespace`` has the globals of the module, for the functions that the rules name. Raises ValueError for a name
    that nothing has.
    """
    return read(load_text(name), namespace)


def load_structs(name: str, namespace: Mapping[str, Any]) -> dict[str, typerules.StructType]:
    """Return the types as :func:`load` does, for values that are structs."""
    return read_as(typerules.StructType, load_text(name), namespace)


def load_text(name: str) -> str:
    """Return the rules next to a module of that name."""
    return importlib.resources.files(__package__).joinpath(f"{name}.rules").read_text()


def read(text: str, namespace: Mapping[str, Any]) -> dict[str, Type]:
    """Return the types whose rules a text declares, as :func:`load` does."""
    return read_as(Type, text, namespace)


def read_as(
    make: Callable[[], _TypeT], text: str, namespace: Mapping[str, Any], special: Special = _no_special
) -> dict[str, _TypeT]:
    """Return types of another form than documents, with constraints of their own."""
    types: dict[str, _TypeT] = {}
    lines: dict[str, list[str]] = {}
    own: list[str] = []
    for line in text.splitlines():
        if line.startswith(" "):
            own.append(line)
        elif line and not line.startswith("#"):
            types[line] = make()
            own = lines[line] = []
    names = Names(types, namespace, special)
    for title, own in lines.items():
        types[title].complete(read_block(own, names))
    return types


class Names:
    """The names that rules can use."""

    def __init__(self, types: Mapping[str, Type], namespace: Mapping[str, Any], special: Special = _no_special) -> None:
        self._types = types
        self._namespace = namespace
        self.special: Final = special

    def find(self, name: str) -> Rule:
        """Return the type or function of a name; raises ValueError if there is none."""
        if name in self._types:
            return self._types[name]
        module, dot, inner = name.rpartition(".")
        if dot:
            owner = importlib.import_module(f"{__package__}.{module}")
            rule = getattr(owner, "TYPES", {}).get(inner) or getattr(owner, inner, None)
        else:
            scope = self._namespace
            rule = next((scope[each] for each in (f"_{name}", name) if each in scope), getattr(constraints, name, None))
        if not callable(rule):
            raise ValueError(f"no rule is called {name}")
        return rule  # type: ignore[no-any-return]


def read_block(lines: list[str], names: Names) -> list[AnyStep]:
    """Return the rules of lines with the same indentation, and of the blocks below conditions."""
    steps: list[AnyStep] = []
    for line, below in _nested(lines):
        word, _, condition = line.partition(" ")
        if word in ("if", "elif", "else"):
            test = () if word == "else" else _condition(condition, names)
            branch = (test, tuple(read_block(below, names)))
            previous = Block(()) if word == "if" else steps.pop() if steps else None
            if not isinstance(previous, Block):
                raise ValueError(f"not a rule: {line}")
            steps.append(Block((*previous.branches, branch)))
        elif word == "union":
            none, several = (text[1:-1] for text in _TOKEN.findall(condition))
            members = [step for each in below for step in read_line(each.strip(), names)]
            steps.append(Union(tuple(step for step in members if isinstance(step, Step)), none, several))
        elif suffix := _SUFFIX.fullmatch(line):
            steps.append(Block(((_condition(suffix[2], names), tuple(read_line(suffix[1], names))),)))
        else:
            steps += read_line(line, names)
    return steps


def _nested(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the lines with the indentation of the first one, each with the lines below it."""
    own = [line for line in lines if not line.strip().startswith("#")]
    indentation = len(own[0]) - len(own[0].lstrip()) if own else 0
    starts = [index for index, line in enumerate(own) if line[indentation] != " "]
    for start, end in zip(starts, [*starts, len(own)][1:], strict=True):
        yield own[start].strip(), own[start + 1 : end]


def read_line(line: str, names: Names) -> list[Step] | list[Block]:
    """Return the rules of one line: one for each field that it names."""
    if line.startswith("@"):
        code = [names.find(name.removeprefix("@")) for name in line.split()]
        return [Step("", rules=tuple((rule, takes_facts(rule)) for rule in code))]
    is_covered = line.startswith("~")
    fields, position = [], int(is_covered)
    while matched := _NAME.match(line, position):
        fields.append(matched)
        position = matched.end()
    separator, constraint_text = line[position : position + 1], line[position + 1 :]
    if not fields or separator not in ("", ":"):
        raise ValueError(f"not a rule: {line}")
    constraint_list = _constraints(constraint_text, names)
    if constraint_list and isinstance(constraint_list[0], _Immutable):
        return [_keep(field, constraint_list[0].report) for field in fields]
    rules = tuple((rule, takes_facts(rule)) for rule in constraint_list)
    return [_step(field, rules)._replace(covered=is_covered) for field in fields]


def _step(matched: re.Match[str], rules: tuple[tuple[Rule, bool], ...]) -> Step:
    name, display, mark, detail = (matched[group] or "" for group in ("name", "shown", "mark", "detail"))
    if name == ".":
        return Step("", rules=rules)
    display, _, further_name = display.partition("/")
    presence = _MARKS.get(mark, rulecompiler.ALWAYS)
    default = _DEFAULTS[mark] if presence == rulecompiler.ALWAYS else None
    return Step(
        name,
        presence,
        default,
        detail[1:-1],
        display or name,
        rules,
        further_name=further_name,
        narrows=mark == _NARROWING,
    )


class _Immutable:
    """The constraint that an update leaves a field as it is, with the rule that reports a change."""

    def __init__(self, report: Rule) -> None:
        self.report: Final = report

    def __call__(self, value: Any, at: Path) -> Found:
        raise ValueError("immutable is the only constraint of a rule")


def _keep(matched: re.Match[str], report: Rule) -> Block:
    name = matched["name"]
    test = Comparison(name, "?changed" if matched["mark"] == "?" else "changed")
    step = Step(name, shown=matched["shown"] or name, rules=((report, False),))
    return Block((((test,), (step,)),))


def _constraints(text: str, names: Names) -> list[Rule]:
    tokens = _TOKEN.findall(text)
    rules = []
    for position, token in enumerate(tokens):
        if token[0] in "\"'":
            continue
        following = tokens[position + 1] if position + 1 < len(tokens) else ""
        detail = following[1:-1] if following[:1] in ('"', "'") else ""
        rules.append(_constraint(token, detail, names))
    return rules


def _constraint(token: str, detail: str, names: Names) -> Rule:
    special: Rule | None = names.special(token, names.find)
    if special is not None:
        return special
    if bound := _BOUND.fullmatch(token):
        number = int(bound[2])
        match bound[1]:
            case ">=":
                return constraints.at_least(number, detail)
            case "<=":
                return constraints.at_most(number, detail)
        return constraints.at_least(number + 1, detail or constraints.POSITIVE)
    if bounds := _RANGE.fullmatch(token):
        return constraints.between(int(bounds[1]), int(bounds[2]), detail)
    if error := _ERROR.fullmatch(token):
        return _error(error[1], error[2] or "", detail, names)
    if token.startswith("["):
        return _list(*token[1:-1].split(), names=names)
    if token.startswith("text("):
        return constraints.one_of_texts(*token[5:-1].split("|"))
    if "|" in token:
        return constraints.one_of(*token.removesuffix("|").split("|"))
    if token.startswith("max="):
        return constraints.max_length(int(token[4:]))
    if token.startswith("bytes="):
        return constraints.max_bytes(int(token[6:]))
    if token.startswith("items="):
        return constraints.max_items(int(token[6:]))
    return names.find(token)


def _list(item: str, *options: str, names: Names) -> Rule:
    words = [option for option in options if option not in ("covered", "first", "here", *_SHOWN_REPETITIONS)]
    named_options = dict(zip(words[::2], words[1::2], strict=True))
    return typerules.Each(
        _constraint(item, "", names),
        limit=int(named_options["limit"]) if "limit" in named_options else None,
        unique=named_options.get("unique", ""),
        key=named_options.get("key", ""),
        covered="covered" in options,
        show=next((_SHOWN_REPETITIONS[each] for each in options if each in _SHOWN_REPETITIONS), typerules.show_key),
        is_repetition_first="first" in options,
        is_at_list="here" in options,
    )


def _error(reason: str, form: str, detail: str, names: Names) -> Rule:
    if reason == "forbidden":
        return constraints.forbidden(detail)
    if reason == "required":
        return constraints.required(detail)
    show = constraints.FORMS[form] if form in constraints.FORMS else names.find(form)
    if reason == "immutable":
        return _Immutable(constraints.invalid(detail or typerules.IMMUTABLE, show=show))
    return constraints.invalid(detail, show=show)


# Conditions


def _condition(text: str, names: Names) -> Condition:
    tokens = _CONDITION.findall(text)
    parts: list[Any] = []
    position = 0
    while position < len(tokens):
        token, operator = tokens[position], tokens[position + 1] if position + 1 < len(tokens) else ""
        if token in _WORDS:
            parts.append(token)
        elif token.startswith("@"):
            parts.append(names.find(token[1:]))
        elif operator == "changed":
            parts.append(Comparison(token.removesuffix("?"), "?changed" if token.endswith("?") else "changed"))
            position += 1
        elif operator in _OPERATORS:
            if position + 2 >= len(tokens):
                raise ValueError(f"not a condition: {text}")
            parts.append(_comparison(token, operator, tokens[position + 2]))
            position += 2
        else:
            parts.append(Comparison(token.removesuffix("?"), "?" if token.endswith("?") else ""))
        position += 1
    return tuple(parts)


def _comparison(name: str, operator: str, operand: str) -> Comparison:
    if name.endswith("#"):
        name, operator = name[:-1], f"#{operator}"
    if operand.startswith((".", "facts.")):
        return Comparison(name, operator, other=operand.removeprefix("."))
    if re.fullmatch(r"-?\d+", operand):
        return Comparison(name, operator, (int(operand),))
    if operand in _LITERALS:
        return Comparison(name, operator, (_LITERALS[operand],))
    return Comparison(name, operator, tuple("" if each == "''" else each for each in operand.split("|")))
