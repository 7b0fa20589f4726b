"""Hostile source text for CEL, and what must come of it: a refusal or an outcome, never another exception.

``bench.cel_fuzz`` tries very many of these inputs, the tests a few.
"""

import random
import re
from typing import Final

from drachma import cel
from tests.unit.cel import running

ENV: Final = running.ENV
DEVICE: Final = running.DEVICE

_A: Final = f'device.attributes["{running.DRIVER}"]'
_TOKENS: Final = (
    "device", "device.driver", "device.attributes", ".attributes", f'["{running.DRIVER}"]', ".model", ".?model", "[?0]",
    "[0]", '"a"', "'b'", 'r"\\d"', 'b"x"', '"""t"""', "1", "-1", "0x7f", "2u", "1.5", "1e3", ".5", "true", "false",
    "null", "&&", "||", "!", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "?", ":", ",", ".", "(", ")",
    "[", "]", "{", "}", "in", "has(", "cel.bind(x, ", "[1,2,3].all(x, ", "[1].map(x, ", ".exists(y, ", ".filter(z, ",
    "x", "y", "dyn(", "int(", "string(", "duration(", "timestamp(", "quantity(", "semver(", "ip(", "cidr(", "url(",
    "size(", "optional.of(", ".orValue(", ".hasValue()", ".matches(", ".find(", ".split(", ".join(", ".format([",
    ".replace(", "lists.range(", ".flatten()", ".sort()", ".distinct()", "sets.contains(", ".isGreaterThan(",
    ".compareTo(", "9223372036854775807", "18446744073709551615u", "\\", "`", "@", "$", "//c\n", "\n", "\t", "é", "水",
    "\x00", "\u2028", "__import__('os')", "lambda: 0", "{{}}", "%s", "'''", "[[[[", "]]]]", "((((", "))))",
)  # fmt: skip
_SEEDS: Final = (
    f'device.driver == "{running.DRIVER}" && {_A}.model == "A100" && {_A}.n > 2',
    f'device.capacity["{running.DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0',
    f'has({_A}.model) && {_A}.?model.orValue("x") == "A100" && {_A}.ver.isGreaterThan(semver("1.0.0"))',
    f'{_A}.model in ["A100", "H100"] || {_A}.ls.exists(f, f == "mig") || {_A}.nope == 1',
    "[1, 2, 3].map(x, x * 2).filter(y, y > 2).exists(z, z == 4)",
    f'cel.bind(x, {_A}, x.model.startsWith("A") && x.n in [1, 2, 3])',
    '"%s %d".format([device.driver, 1]) == "x" || url("https://a.b/c?d=e").getHost() == "a.b"',
    'timestamp("2020-01-01T00:00:00Z") + duration("1h") > timestamp("2020-01-01T00:30:00Z")',
    '{"a": [1, 2], "c": dyn([1.5])}.a[1] == 2 ? true : false',
    'device.attributes.exists(d, device.attributes[d].exists(k, v, v == 1 || k == "model"))',
    "lists.range(10).transformMap(i, v, i * v).size() == 10 && [[1], [2]].flatten().sum() == 3",
    'cidr("10.0.0.0/8").containsIP("10.1.2.3") && ip("::1").isLoopback() && "a-b".matches("^[a-z]+(-[a-z]+)*$")',
    '"abc".replace("b", "x").split("x").join("-").substring(1).findAll("[a-z]").size() > 1',
    "optional.of(1).optMap(x, x + 1).or(optional.none()).orValue(3) == 2 && [3, 1].sort() == [1, 3]",
)
_LITERAL: Final = re.compile(r"""\b[0-9]+\b|"[^"]*"|'[^']*'""")
_TEXTS: Final = (
    '""',
    '"A100"',
    '"["',
    '"^(a+)+$"',
    '"1Gi"',
    '"1.0.0"',
    '"::1"',
    '"%s%d%%"',
    '"\\u00e9\\n"',
    '"x" + "y"',
)
_NUMBERS: Final = ("0", "1", "-1", "7", "9223372036854775807", "(1/0)", "size([1])", "1000000", "int(dyn(1.5))")
_BRACKETS: Final = (
    ("(", ")"), ("[", "]"), ("{1:", "}"), ("!", ""), ("-", ""), ("true?", ":false"), ("size(", ")"), ('"a"+', '"a"'),
    ("[1].all(x,", ")"), ("cel.bind(x,1,", ")"), ("1+", "1"), ("dyn(", ")"), ("a.", "a"), ("x[", "]"), ("has(", ")"),
    ("optional.of(1).optMap(x,", ")"), ("cel.bind(s,s+s,", ")"), ("true&&", "true"), ("[1].map(x,", ")"),
)  # fmt: skip


def inputs(seed: int, count: int) -> list[str]:
    """So many hostile texts, the same for the same seed."""
    chance = random.Random(seed)
    return [_one(chance) for _ in range(count)]


def _one(chance: random.Random) -> str:
    kind = chance.randrange(10)
    if kind < 3:
        return _refilled(chance, chance.choice(_SEEDS))
    if kind < 6:
        return _mutated(chance, chance.choice(_SEEDS))
    if kind < 8:
        return "".join(chance.choice(_TOKENS) for _ in range(chance.randint(1, 40)))
    if kind == 8:
        return _repeated(chance)
    size = chance.randint(0, 60)
    return "".join(chr(chance.choice((chance.randrange(128), chance.randrange(0x11000)))) for _ in range(size))


def _refilled(chance: random.Random, text: str) -> str:
    """The same expression with other literals, which mostly still compiles."""

    def other(match: re.Match[str]) -> str:
        if chance.random() < 0.6:
            return match[0]
        return chance.choice(_TEXTS if match[0][0] in "\"'" else _NUMBERS)

    return _LITERAL.sub(other, text)


def _mutated(chance: random.Random, text: str) -> str:
    for _ in range(chance.randint(1, 4)):
        start = chance.randrange(len(text) + 1)
        end = min(len(text), start + chance.randint(0, 12))
        kind = chance.randrange(4)
        if kind == 0:
            text = text[:start] + text[end:]
        elif kind == 1:
            text = text[:start] + chance.choice(_TOKENS) + text[start:]
        elif kind == 2:
            text = text[:end] + text[start:]
        else:
            text = text[:start] + chance.choice(_TOKENS) + text[end:]
    return text


def _repeated(chance: random.Random) -> str:
    """Deep and long inputs, some of them balanced."""
    head, tail = chance.choice(_BRACKETS)
    times = chance.choice((3, 30, 240, 251, 1000))
    return (head * times + chance.choice(("1", "true", '"a"', "x", "[]")) + tail * times)[:12_000]


def attempt(text: str) -> str:
    """Compiles and evaluates a text, and tells how far it came; raises only what should never be raised."""
    try:
        program = cel.compile_expression(text, ENV)
    except cel.CompilationError:
        return "refused"
    outcome = program.evaluate(DEVICE)
    assert (outcome.match is None) == (outcome.error is not None)
    assert program.max_cost >= 0
    assert program.reads is None or all(program.reads)
    return "failed" if outcome.error is not None else "evaluated"
