"""Evaluation of recorded expressions: matches, errors and costs on devices, and values of the language's own cases.

The language's cases are not Kubernetes': some need libraries that Kubernetes' environment does not have, some are about
expressions that were never checked, which Kubernetes does not evaluate, and some ask for what Go's implementation does
differently. ``EXCLUDED`` lists them by file and section with the reason; everything else runs.
"""

import base64
import math
import struct
from typing import Any

import msgspec
import pytest

from drachma.api import resourceslice
from drachma.cel import ast, device, program
from drachma.cel.runtime import conversions, faults, values
from drachma.values import quantity
from tests.conformance import test_cel_compile as compiled
from tests.conformance import vectors

DEVICE_CASES = [
    pytest.param(case, id=f"{name}-{case['name']}")
    for name in ("cel-device", "cel-random")
    for case in vectors.lines(f"{name}.jsonl")
]
SPEC_CASES = vectors.lines("cel-spec.jsonl")

MUST_RUN = 1400

_NO_FUNCTION = "not in version 2 of the strings library, which Kubernetes has"
_FORMAT = "version 2 of the strings library, which Kubernetes has, prints this differently or refuses it"
_LENIENT = "Go's implementation, which Kubernetes runs, accepts this"

EXCLUDED: dict[tuple[str, str], str] = {
    ("block_ext", "*"): "cel.block is not a macro of Kubernetes",
    ("encoders_ext", "*"): "the base64 library is not in Kubernetes",
    ("math_ext", "*"): "the math library is not in Kubernetes",
    ("string_ext", "reverse"): _NO_FUNCTION,
    ("fields", "map_fields/map_bad_key_type_or_true"): "Go refuses a key of bytes when it builds the program",
    ("fields", "map_fields/map_bad_key_type_and_false"): "Go refuses a key of bytes when it builds the program",
    ("fields", "qualified_identifier_resolution/map_key_float"): _LENIENT,
    ("fields", "qualified_identifier_resolution/map_value_repeat_key"): _LENIENT,
    ("fields", "qualified_identifier_resolution/map_value_repeat_key_heterogeneous"): _LENIENT,
    ("network_ext", "ipv4/ipv4_equals_ipv6"): "Kubernetes refuses IPv4 written as IPv6",
    ("network_ext", "ipv4/ipv4_not_equals_ipv6"): "Kubernetes refuses IPv4 written as IPv6",
    ("optionals", "optionals/map_null_entry_no_such_key"): _LENIENT,
    ("optionals", "optionals/map_present_key_invalid_field"): _LENIENT,
    (
        "parse",
        "bytes_literals/triple_single_quoted_unescaped_punctuation",
    ): "the case expects a backslash that is not there; Go agrees",
    (
        "parse",
        "bytes_literals/triple_double_quoted_unescaped_punctuation",
    ): "the case expects a backslash that is not there; Go agrees",
    ("string_ext", "value_errors/indexof_out_of_range"): _LENIENT,
    ("string_ext", "value_errors/lastindexof_out_of_range"): _LENIENT,
    **{
        ("string_ext", f"format/{name}"): _FORMAT
        for name in (
            "NaN support for decimal",
            "NaN support for scientific notation",
            "default precision for fixed-point clause with int",
            "default precision for fixed-point clause with uint",
            "default precision for scientific notation",
            "default precision for scientific notation with int",
            "default precision for scientific notation with uint",
            "dyntype NaN/infinity support",
            "dyntype support for lists",
            "dyntype support for maps",
            "dyntype support for scientific notation",
            "list support for string",
            "map support (all key types)",
            "map support for string",
            "negative infinity support for decimal",
            "negative infinity support for fixed-point",
            "negative infinity support for scientific notation",
            "positive infinity support for decimal",
            "positive infinity support for fixed-point",
            "positive infinity support for scientific notation",
            "scientific notation formatting clause",
            "scientific notation formatting clause in a string variable",
        )
    },
}
"""Cases that do not run, by file and section (or section and name), with the reason."""


def is_excluded(case: dict[str, Any]) -> bool:
    keys = ((case["file"], "*"), (case["file"], case["section"]), (case["file"], f"{case['section']}/{case['name']}"))
    return case["check_only"] or any(key in EXCLUDED for key in keys)


def _decode(kind: type, value: Any) -> Any:
    assert kind is quantity.Quantity
    return quantity.Quantity.parse(value)


def make_device(case: dict[str, Any]) -> device.Device:
    attributes = msgspec.convert(case.get("attributes", {}), dict[str, resourceslice.DeviceAttribute])
    capacity = msgspec.convert(case.get("capacity", {}), dict[str, resourceslice.DeviceCapacity], dec_hook=_decode)
    return device.Device(
        case["driver"],
        attributes=attributes,
        capacity=capacity,
        allow_multiple_allocations=case.get("allowMultipleAllocations"),
    )


def up_to_frame(message: str) -> str:
    """The first line of a compile error, and of a syntax error only its place."""
    line = message.partition("\n")[0]
    place, marker, _ = line.partition("Syntax error:")
    return place + marker if marker else line


@pytest.mark.parametrize("case", DEVICE_CASES)
def test_device_expressions(case: dict[str, Any]) -> None:
    env = compiled.device_environment(case)
    if "compileError" in case:
        with pytest.raises(program.CompilationError) as caught:
            program.compile_expression(case["expression"], env)
        assert up_to_frame(str(caught.value)) == up_to_frame(case["compileError"])
        return
    compiled_program = program.compile_expression(case["expression"], env)
    assert str(compiled_program.max_cost) == case["maxCost"]
    subject = make_device(case)
    outcome = compiled_program.evaluate(subject)
    assert outcome.match == case.get("match")
    assert outcome.error == case.get("matchError")
    # One case has no recorded cost: it depends on the order in which Go walks a map.
    assert outcome.cost == case.get("actualCost", outcome.cost)
    # The generated code must not differ from the machine that it stands in for.
    result = compiled_program.evaluate_stepwise(subject.variables)
    assert result.cost == outcome.cost
    if isinstance(result.value, faults.Fault | faults.Abort):
        assert str(result.value) == outcome.error
    elif outcome.match is not None:
        assert result.value is outcome.match


def recorded_value(form: list[Any]) -> Any:
    match form:
        case ["null"]:
            return None
        case ["uint", number]:
            return ast.UInt(number)
        case ["double", text]:
            return float(text)
        case ["bytes", text]:
            return base64.b64decode(text)
        case ["list", elements]:
            return [recorded_value(element) for element in elements]
        case ["map", entries]:
            return values.make_map([(recorded_value(key), recorded_value(value)) for key, value in entries])
        case ["type", name]:
            return values.TypeValue(name)
        case [_, value]:
            return value
    raise AssertionError(f"unknown form of a value: {form}")


def is_identical(value: Any, want: Any) -> bool:
    """Equal, of the same type, and for doubles the same bits (any NaN will do)."""
    if isinstance(value, tuple | values.Concat):
        value = list(value)
    if isinstance(value, list) and isinstance(want, list):
        return len(value) == len(want) and all(map(is_identical, value, want))
    if isinstance(value, dict) and isinstance(want, dict):
        return value.keys() == want.keys() and all(is_identical(value[key], want[key]) for key in value)
    if value.__class__ is not want.__class__:
        return False
    if isinstance(want, float):
        return (math.isnan(value) and math.isnan(want)) or struct.pack("d", value) == struct.pack("d", want)
    return bool(value == want)


def run_spec_case(case: dict[str, Any]) -> str | None:
    """What is wrong with the outcome of a case, None if nothing is."""
    want = case["expect"]
    fails = want[0] == "ERROR"
    compile_case = program.compile_unchecked if case["disable_check"] else program.compile_expression
    try:
        compiled_program = compile_case(case["expr"], compiled.spec_environment(case))
    except program.CompilationError as error:
        return None if fails else f"does not compile: {error}"
    bindings = {name: recorded_value(form) for name, form in case["bindings"].items()}
    for result in (
        compiled_program.evaluate_variables(bindings),
        compiled_program.evaluate_stepwise(bindings),
    ):
        if isinstance(result.value, faults.Fault | faults.Abort):
            if not fails:
                return f"fails: {result.value}"
        elif fails:
            return f"gives {result.value!r} instead of an error"
        elif not is_identical(result.value, recorded_value(want)):
            return f"gives {result.value!r} instead of {recorded_value(want)!r}"
    return None


@pytest.mark.parametrize("file", sorted({case["file"] for case in SPEC_CASES}))
def test_language_cases(file: str) -> None:
    wrong = []
    for case in SPEC_CASES:
        if case["file"] == file and not is_excluded(case):
            problem = run_spec_case(case)
            if problem is not None:
                wrong.append(f"{case['section']}/{case['name']}: {case['expr']}\n    {problem}")
    assert not wrong, "\n".join(wrong)


def test_enough_language_cases_run() -> None:
    assert sum(not is_excluded(case) for case in SPEC_CASES) >= MUST_RUN


def test_no_exclusion_is_empty() -> None:
    for file, section in EXCLUDED:
        assert any(case["file"] == file and is_excluded(case) for case in SPEC_CASES), (file, section)


def test_conversions_are_those_of_the_language() -> None:
    """A spot check that the values compared above are told apart by type."""
    assert not is_identical(1, ast.UInt(1))
    assert not is_identical(True, 1)
    assert conversions.type_of(ast.UInt(1)) == values.TypeValue("uint")
