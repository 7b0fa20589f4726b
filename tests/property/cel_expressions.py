"""Expressions for property tests: well-typed text of the core language, over a few variables or over a device."""

from typing import Any

from hypothesis import strategies as st

VARIABLES = {
    "i": "int", "j": "int", "u": "uint", "d": "double", "s": "string", "t": "string", "b": "bool", "l": "ints",
    "m": "map",
}  # fmt: skip

INTS = st.one_of(st.integers(-5, 5), st.sampled_from([2**63 - 1, -(2**63), 2**53 + 1]))
TEXTS = st.text(alphabet="abé水 \n'\"\\", max_size=4)
DOUBLES = st.sampled_from([0.0, -0.0, 1.0, 1.5, -2.25, 1e300, float("inf")])


def spell_text(text: str) -> str:
    out = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{out}"'


def spell_int(number: int) -> str:
    return f"({number})" if number < 0 else str(number)


@st.composite
def expression(draw: st.DrawFn, kind: str = "bool", depth: int = 3, local: tuple[tuple[str, str], ...] = ()) -> str:
    """An expression of a kind: bool, int, uint, double, string, ints (a list) or map (of strings to ints)."""
    names = [name for name, of in (*VARIABLES.items(), *local) if of == kind]
    literal = _literal(kind)
    if depth <= 0 or draw(st.integers(0, 5)) == 0:
        return draw(st.one_of(st.sampled_from(names), literal) if names else literal)

    def part(of: str, more: tuple[tuple[str, str], ...] = ()) -> str:
        return draw(expression(of, depth - 1, (*local, *more)))

    shape = draw(st.sampled_from(_SHAPES[kind]))
    variable = f"x{len(local)}"
    made = shape.replace("VAR", variable)
    for of in ("bool", "int", "uint", "double", "string", "ints", "map"):
        while f"<{of}>" in made:
            made = made.replace(f"<{of}>", part(of), 1)
        while f"<{of}:int>" in made:
            made = made.replace(f"<{of}:int>", part(of, ((variable, "int"),)), 1)
    return made


def _literal(kind: str) -> st.SearchStrategy[str]:
    literals: dict[str, st.SearchStrategy[str]] = {
        "bool": st.sampled_from(["true", "false"]),
        "int": INTS.map(spell_int),
        "uint": st.sampled_from(["0u", "1u", "2u", "18446744073709551615u"]),
        "double": st.sampled_from(["0.0", "1.0", "1.5", "(-2.25)", "1e300"]),
        "string": TEXTS.map(spell_text),
        "ints": st.lists(INTS.map(spell_int), min_size=1, max_size=3).map(lambda parts: f"[{', '.join(parts)}]"),
        "map": st.dictionaries(st.sampled_from(["a", "b"]), INTS.map(spell_int), min_size=1, max_size=2).map(
            lambda entries: "{" + ", ".join(f'"{key}": {value}' for key, value in entries.items()) + "}"
        ),
    }
    return literals[kind]


_SHAPES: dict[str, list[str]] = {
    "bool": [
        "(<bool> && <bool>)", "(<bool> || <bool>)", "!<bool>", "(<bool> ? <bool> : <bool>)",
        "(<int> == <int>)", "(<int> != <int>)", "(<int> < <int>)", "(dyn(<int>) <= dyn(<uint>))", "(<uint> > <uint>)",
        "(dyn(<double>) >= dyn(<int>))", "(<double> == <double>)", "(dyn(<int>) == dyn(<double>))",
        "(dyn(<int>) == dyn(<string>))",
        "(<string> == <string>)", "(<string> < <string>)", "<string>.contains(<string>)",
        "<string>.startsWith(<string>)",
        "<string>.endsWith(<string>)", "(<int> in <ints>)", "(<string> in <map>)", "(<ints> == <ints>)",
        "<ints>.all(VAR, <bool:int>)", "<ints>.exists(VAR, <bool:int>)", "<ints>.exists_one(VAR, <bool:int>)",
        "has(<map>.a)", "(type(<int>) == int)", "(<map> == <map>)",
    ],
    "int": [
        "(<int> + <int>)", "(<int> - <int>)", "(<int> * <int>)", "(<int> / <int>)", "(<int> % <int>)", "-<int>",
        "(<bool> ? <int> : <int>)", "size(<string>)", "size(<ints>)", "<ints>[<int>]", "<map>[<string>]", "<map>.a",
        "int(<uint> + 0u)", "int(<double> + 0.0)", "int(<string> + \"\")",
    ],
    "uint": ["(<uint> + <uint>)", "(<uint> - <uint>)", "(<uint> * <uint>)", "(<uint> / <uint>)", "uint(<int> + 0)"],
    "double": ["(<double> + <double>)", "(<double> * <double>)", "double(<int>)", "(<double> - <double>)"],
    "string": ["(<string> + <string>)", "(<bool> ? <string> : <string>)", "string(<int>)", "string(<bool>)"],
    "ints": [
        "(<ints> + <ints>)", "[<int>, <int>]", "<ints>.map(VAR, <int:int>)", "<ints>.filter(VAR, <bool:int>)",
        "(<bool> ? <ints> : <ints>)",
    ],
    "map": ['{"a": <int>}', "(<bool> ? <map> : <map>)"],
}  # fmt: skip

BINDINGS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "i": INTS,
        "j": INTS,
        "u": st.integers(0, 5),
        "d": DOUBLES,
        "s": TEXTS,
        "t": TEXTS,
        "b": st.booleans(),
        "l": st.lists(INTS, max_size=3),
        "m": st.dictionaries(st.sampled_from(["a", "b"]), INTS, max_size=2),
    }
)

DRIVER = "d.example.com"

_PATHS = [
    f'device.{field}["{domain}"].{name}' for field in ("attributes",) for domain in (DRIVER, "o") for name in "ab"
]
_DEVICE_SHAPES = [
    "(<v> == <v>)", "(<v> == 1)", '(<v> == "x")', "(<v> > 1)", "has(<p>)", "(<b> && <b>)", "(<b> || <b>)", "!<b>",
    "(<b> ? <b> : <b>)", f'("a" in device.attributes["{DRIVER}"])', '("o" in device.attributes)',
    'device.attributes["o"].exists(k, k == "a")', "device.attributes.all(d, d != \"o\")", "(device.driver == <v>)",
    "device.allowMultipleAllocations", f'(device.capacity["{DRIVER}"].c.compareTo(quantity("1")) > 0)',
    f'cel.bind(x, device.attributes["{DRIVER}"], x.a == 1 || has(x.b))', "cel.bind(x, device.attributes, x.o.a == 1)",
    'device.attributes["o"].?a.hasValue()', "(<v>.orValue(1) == 1)", "(size(device.attributes) > 1)",
    "cel.bind(x, device, x.driver == <v>)", 'device.attributes[device.driver + ""].a == 1',
    "(<b> ? device.attributes : device.attributes).o.a == 1", "(device == device)",
    f'{{"k": device.attributes["{DRIVER}"]}}.k.a == 1', '[<v>].exists(y, y == 1)', "dyn(device).driver == <v>",
    "(kubernetes.DRADevice{driver: string(<v>)}.driver == <v>)",
    "(<b> || kubernetes.DRADevice{?driver: <v>, attributes: device.attributes} == device)",
]  # fmt: skip


@st.composite
def device_expression(draw: st.DrawFn, depth: int = 2) -> str:
    """A selector over ``device``, sensible or not; not all of them compile."""
    made = draw(st.sampled_from(_DEVICE_SHAPES))
    truth = device_expression(depth - 1) if depth > 0 else st.sampled_from(["true", "false"])
    values = st.sampled_from([*_PATHS, "device.driver", "1", '"x"', f'device.attributes["{DRIVER}"].?a'])
    for place, strategy in (("<b>", truth), ("<v>", values), ("<p>", st.sampled_from(_PATHS))):
        while place in made:
            made = made.replace(place, draw(strategy), 1)
    return made
