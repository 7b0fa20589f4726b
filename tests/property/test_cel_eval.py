"""CEL evaluation, held against an independent implementation, against itself, and against what it says it reads."""

import math
from typing import Any, Final

from cel_expr_python import cel as oracle  # type: ignore[import-untyped]
from hypothesis import example, given, settings
from hypothesis import strategies as st

from drachma import cel
from drachma.api import resourceslice
from drachma.cel import ast, environment, program, types
from drachma.cel.runtime import faults, kinds, values
from tests.property import cel_expressions as expressions
from tests.unit.cel import running

_TYPES = {
    "int": (types.INT, oracle.Type.INT),
    "uint": (types.UINT, oracle.Type.UINT),
    "double": (types.DOUBLE, oracle.Type.DOUBLE),
    "string": (types.STRING, oracle.Type.STRING),
    "bool": (types.BOOL, oracle.Type.BOOL),
    "ints": (types.list_of(types.INT), oracle.Type.List(oracle.Type.INT)),
    "map": (types.map_of(types.STRING, types.INT), oracle.Type.Map(oracle.Type.STRING, oracle.Type.INT)),
}
ENV = environment.plain_environment({name: _TYPES[kind][0] for name, kind in expressions.VARIABLES.items()})
ORACLE = oracle.NewEnv(variables={name: _TYPES[kind][1] for name, kind in expressions.VARIABLES.items()})


def ours(bindings: dict[str, Any]) -> dict[str, Any]:
    return {**bindings, "u": ast.UInt(bindings["u"])}


def plain(value: Any) -> Any:
    """A value with its type, in a form that can be compared."""
    if isinstance(value, float) and math.isnan(value):
        return ("double", "NaN")
    kind = value.__class__
    if kind in kinds.LISTS:
        return [plain(element) for element in value]
    if kind in kinds.MAPS:
        return {plain(values.decode_key(key)): plain(element) for key, element in value.items()}
    return (kinds.name(value), value)


def oracle_plain(value: Any) -> Any:
    if isinstance(value, list):
        return [oracle_plain(element) for element in value]
    if isinstance(value, dict):
        return {oracle_plain(key): oracle_plain(element) for key, element in value.items()}
    return plain(value)


def oracle_value(text: str, bindings: dict[str, Any]) -> Any:
    """What the other implementation gives, None for an error."""
    result = ORACLE.compile(text).eval(data=bindings)
    if result.type() == oracle.Type.ERROR:
        return None
    found = result.plain_value()
    if result.type() == oracle.Type.UINT:
        found = ast.UInt(found)
    return oracle_plain(found)


@given(
    st.sampled_from(["bool", "int", "uint", "double", "string", "ints", "map"]).flatmap(expressions.expression),
    expressions.BINDINGS,
)
def test_an_independent_implementation_agrees(text: str, bindings: dict[str, Any]) -> None:
    result = program.compile_expression(text, ENV).evaluate_variables(ours(bindings))
    failed = isinstance(result.value, faults.Fault | faults.Abort)
    assert (None if failed else plain(result.value)) == oracle_value(text, bindings)


@settings(max_examples=60)
@given(expressions.expression(), expressions.BINDINGS)
def test_generated_code_and_machine_agree(text: str, bindings: dict[str, Any]) -> None:
    compiled = program.compile_expression(text, ENV)
    fast = compiled.evaluate_variables(ours(bindings))
    slow = compiled.evaluate_stepwise(ours(bindings))
    assert (repr(fast.value), fast.cost) == (repr(slow.value), slow.cost)


_VALUES = st.sampled_from(
    [
        None,
        resourceslice.DeviceAttribute(int_value=1),
        resourceslice.DeviceAttribute(int_value=2),
        resourceslice.DeviceAttribute(string_value="x"),
        resourceslice.DeviceAttribute(bool_value=True),
        resourceslice.DeviceAttribute(version_value="1.0.0"),
        resourceslice.DeviceAttribute(string_values=("x", "y")),
    ]
)
_NAMES = ("a", "b", "o/a", "o/b", "other/c")
_DEVICES = st.fixed_dictionaries(
    {
        "attributes": st.fixed_dictionaries(dict.fromkeys(_NAMES, _VALUES)),
        "capacity": st.dictionaries(st.sampled_from(["c", "o/c"]), st.sampled_from(["0", "1", "2"])),
        "allow": st.booleans(),
    }
)


def make_device(form: dict[str, Any]) -> cel.Device:
    return cel.Device(
        expressions.DRIVER,
        attributes={name: value for name, value in form["attributes"].items() if value is not None},
        capacity={name: running.amount(text) for name, text in form["capacity"].items()},
        allow_multiple_allocations=form["allow"],
    )


def keep(table: dict[str, Any], other: dict[str, Any], read: frozenset[tuple[str, ...]], field: str) -> dict[str, Any]:
    """The entries of one device that are read, and the entries of another that are not."""

    def is_read(name: str) -> bool:
        domain, slash, rest = name.partition("/")
        path = (field, domain, rest) if slash else (field, expressions.DRIVER, name)
        return any(path[:length] in read for length in (1, 2, 3))

    result = {name: value for name, value in table.items() if is_read(name)}
    return {**result, **{name: value for name, value in other.items() if not is_read(name)}}


_EMPTY: Final[dict[str, Any]] = {"attributes": {}, "capacity": {}, "allow": False}
_OTHER: Final[dict[str, Any]] = {**_EMPTY, "attributes": {"other/c": resourceslice.DeviceAttribute(int_value=1)}}


@given(expressions.device_expression(), _DEVICES, _DEVICES)
@example("cel.bind(x, device.attributes, x.o.a == 1)", _EMPTY, _OTHER)
def test_what_is_not_read_does_not_matter(text: str, one: dict[str, Any], other: dict[str, Any]) -> None:
    try:
        compiled = cel.compile_expression(text, running.ENV)
    except cel.CompilationError:
        return
    read = compiled.reads
    if read is None:
        return
    mixed = {
        "attributes": keep(one["attributes"], other["attributes"], read, "attributes"),
        "capacity": keep(one["capacity"], other["capacity"], read, "capacity"),
        "allow": one["allow"] if ("allowMultipleAllocations",) in read else other["allow"],
    }
    assert compiled.evaluate(make_device(one)) == compiled.evaluate(make_device(mixed))


@settings(max_examples=60)
@given(expressions.device_expression(), _DEVICES)
def test_generated_code_and_machine_agree_on_devices(text: str, form: dict[str, Any]) -> None:
    try:
        compiled = cel.compile_expression(text, running.ENV)
    except cel.CompilationError:
        return
    subject = make_device(form)
    outcome = compiled.evaluate(subject)
    slow = compiled.evaluate_stepwise(subject.variables)
    assert outcome.cost == slow.cost
    if isinstance(slow.value, faults.Fault | faults.Abort):
        assert outcome.error == str(slow.value)
    elif outcome.match is not None:
        assert outcome.match is slow.value
