"""CEL: microseconds per evaluation and per compilation of selectors, beside those of upstream's Go implementation."""

from bench import timing
from drachma import cel
from drachma.api import resourceslice
from drachma.cel import checker, parser, plan
from drachma.values import quantity

_DOMAIN = "gpu.example.com"
_ATTRIBUTES = f'device.attributes["{_DOMAIN}"]'

TYPICAL = (
    f'device.driver == "{_DOMAIN}" && {_ATTRIBUTES}.model == "A100" && '
    f'device.capacity["{_DOMAIN}"].memory.compareTo(quantity("40Gi")) >= 0'
)
GO_EVALUATION = 7.6
GO_COMPILATION = 385.0
GOAL_EVALUATION = 0.5
GOAL_COMPILATION = 1000.0

SELECTORS = (
    ("typical (driver, string, capacity)", TYPICAL),
    ("one attribute", f'{_ATTRIBUTES}.model == "A100"'),
    ("first term decides", f'device.driver == "other" && {_ATTRIBUTES}.model == "A100"'),
    ("has and compare", f'has({_ATTRIBUTES}.model) && {_ATTRIBUTES}.model == "A100"'),
    ("optional with default", f'{_ATTRIBUTES}.?model.orValue("") == "A100"'),
    ("version", f'{_ATTRIBUTES}.driverVersion.isGreaterThan(semver("1.0.0"))'),
    ("one of a list", f'{_ATTRIBUTES}.model in ["A100", "H100"]'),
    ("cel.bind", f'cel.bind(a, {_ATTRIBUTES}, a.model == "A100" && a.index > 0)'),
    ("exists over a list", f'{_ATTRIBUTES}.features.exists(f, f == "mig")'),
    ("pattern", f'{_ATTRIBUTES}.model.matches("^A[0-9]+$")'),
    ("missing attribute (an error)", f"{_ATTRIBUTES}.nope == 1"),
)


def device() -> cel.Device:
    """A device as drivers publish them."""
    attribute = resourceslice.DeviceAttribute
    return cel.Device(
        _DOMAIN,
        attributes={
            "model": attribute(string_value="A100"),
            "index": attribute(int_value=3),
            "uuid": attribute(string_value="GPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c"),
            "driverVersion": attribute(version_value="1.2.3"),
            "features": attribute(string_values=("nvlink", "mig")),
        },
        capacity={"memory": resourceslice.DeviceCapacity(value=quantity.Quantity.parse("80Gi"))},
    )


def main() -> None:
    """Print the two tables."""
    env = cel.device_environment(consumable_capacity=True, list_type_attributes=True)
    subject = device()
    _evaluation(env, subject)
    _compilation(env)


def _evaluation(env: cel.environment.Environment, subject: cel.Device) -> None:
    rows = []
    for name, expression in SELECTORS:
        program = cel.compile_expression(expression, env)
        program.evaluate(subject)
        evaluate = timing.per_call(lambda program=program: program.evaluate(subject)) * 1e6  # type: ignore[misc]
        matches = "-"
        if program.evaluate(subject).error is None:
            matches = f"{timing.per_call(lambda program=program: program.matches(subject)) * 1e6:.2f}"  # type: ignore[misc]
        go = f"{GO_EVALUATION}" if expression == TYPICAL else ""
        goal = f"{GOAL_EVALUATION}" if expression == TYPICAL else ""
        rows.append((name, matches, f"{evaluate:.2f}", goal, go))
    header = ("selector", "matches us", "evaluate us", "goal", "Go us")
    timing.table("cel: evaluation, with cost counting", header, rows)


def _compilation(env: cel.environment.Environment) -> None:
    parsed = parser.parse(TYPICAL, env.macros)
    checked = checker.check(parsed, env)
    subject = device()

    def whole() -> None:
        # The first evaluation generates the code, so it belongs to compiling.
        cel.compile_expression(TYPICAL, env).matches(subject)

    rows = [
        ("parse", _us(timing.per_call(lambda: parser.parse(TYPICAL, env.macros), repeat=20)), "", ""),
        ("check", _us(timing.per_call(lambda: checker.check(parsed, env), repeat=20)), "", ""),
        ("plan", _us(timing.per_call(lambda: plan.build(checked, env), repeat=20)), "", ""),
        (
            "all, with code and first evaluation",
            _us(timing.per_call(whole, repeat=20)),
            f"{GOAL_COMPILATION:.0f}",
            f"{GO_COMPILATION:.0f}",
        ),
    ]
    cache = cel.Cache(env)
    rows.append(("from the cache", f"{timing.per_call(lambda: cache.selector(TYPICAL)) * 1e6:.2f}", "", ""))
    timing.table("cel: compilation of the typical selector", ("step", "us", "goal", "Go us"), rows)


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.0f}"


if __name__ == "__main__":
    main()
