"""Short ways to run an expression in tests: on a device with everything, or with no variables at all."""

from typing import Any

from drachma import cel
from drachma.api import resourceslice
from drachma.cel import environment, program
from drachma.cel.runtime import faults
from drachma.values import quantity

DRIVER = "gpu.example.com"
ENV = cel.device_environment(consumable_capacity=True, list_type_attributes=True, expressions=cel.Expressions.NEW)
PLAIN = environment.plain_environment()

_attribute = resourceslice.DeviceAttribute


def amount(text: str) -> resourceslice.DeviceCapacity:
    return resourceslice.DeviceCapacity(value=quantity.Quantity.parse(text))


ATTRIBUTES = {
    "model": _attribute(string_value="A100"),
    "empty": _attribute(string_value=""),
    "n": _attribute(int_value=3),
    "ok": _attribute(bool_value=True),
    "ver": _attribute(version_value="1.2.3"),
    "ls": _attribute(string_values=("a", "b")),
    "li": _attribute(int_values=(1, 2, 3)),
    "lv": _attribute(version_values=("1.0.0", "2.0.0")),
    "other.example.com/x": _attribute(int_value=1),
}
CAPACITY = {"memory": amount("80Gi"), "cores": amount("108")}
DEVICE = cel.Device(DRIVER, attributes=ATTRIBUTES, capacity=CAPACITY, allow_multiple_allocations=True)


def on_device(expression: str, subject: cel.Device = DEVICE, **options: Any) -> cel.Outcome:
    """The outcome of a selector."""
    return cel.compile_expression(expression, ENV).evaluate(subject, **options)


def value(expression: str, **variables: Any) -> Any:
    """The value of an expression without a device; errors are raised. Generated code and machine must agree."""
    compiled = program.compile_expression(expression, PLAIN)
    result = compiled.evaluate_variables(variables)
    stepwise = compiled.evaluate_stepwise(variables)
    assert result.cost == stepwise.cost
    assert repr(result.value) == repr(stepwise.value)
    if isinstance(result.value, faults.Fault | faults.Abort):
        raise result.value
    return result.value
