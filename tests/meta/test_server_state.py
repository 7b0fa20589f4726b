"""The server keeps nothing outside of its applications: no module holds state, and one module writes to the store.

What an application remembers belongs to it and to its surface. Modules have constants only: containers whose type does
not let anybody change them, which mypy checks, or tables that are written down in full and that nothing in the module
changes. The few memories of pure functions of texts are listed here, with why.
"""

import ast
import pathlib
from collections.abc import Iterator

import pytest

SOURCE = pathlib.Path(__file__).parents[2] / "src"
SERVER = SOURCE / "drachma" / "server"

READ_ONLY = frozenset({"Mapping", "Sequence", "Collection", "Set", "frozenset", "tuple", "Query"})
"""Types, and names that modules have for such types."""

MUTABLE_CALLS = frozenset(
    {"dict", "list", "set", "bytearray", "defaultdict", "deque", "Counter", "OrderedDict", "ChainMap"}
    | {"WeakKeyDictionary", "WeakValueDictionary", "WeakSet", "ContextVar", "local", "count", "Random"}
)
MUTABLE_LITERALS = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp)
CACHES = frozenset({"cache", "lru_cache", "remember"})
CHANGES = frozenset(
    {"add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "setdefault"}
    | {"update"}
)
WRITES = frozenset({"commit", "create", "delete", "update"})

OPTIONS = "what clients say in queries and headers, which most say again and again"
FIELDS = "names of fields in managedFields, of which few objects have any of their own"
LEAF = "the set without fields that all leaves share; sets are built once and not changed afterwards"
MEMORIES = {
    "drachma.server.calls.options.functools.lru_cache(maxsize=1024)(_write_options)": OPTIONS,
    "drachma.server.ownership.comparison._LEAF": LEAF,
    "drachma.server.ownership.fieldmanagers._agent": OPTIONS,
    "drachma.server.ownership.fieldset.EMPTY": LEAF,
    "drachma.server.ownership.fieldset._canonical": FIELDS,
    "drachma.server.ownership.fieldset._order": FIELDS,
    "drachma.server.ownership.fieldset._format_element": FIELDS,
    "drachma.server.ownership.fieldset.functools.lru_cache(maxsize=4096)(_build_item_element)": FIELDS,
    "drachma.server.ownership.managers.functools.lru_cache(maxsize=1024)(_identifier)": (
        "managers' names in managedFields, of which there are few"
    ),
    "drachma.server.presentation.negotiation.functools.lru_cache(maxsize=256)(_output)": OPTIONS,
    "drachma.server.wire.requests.functools.lru_cache(maxsize=1024)(_parse)": OPTIONS,
}
"""What may remember, and what of: texts alone, whatever is served and stored, and never more than a limit."""

WRITER = "drachma.server.pipeline.commit"


def state(source: str) -> Iterator[str]:
    """What a module keeps: its containers that can be changed, names that functions rebind, and caches."""
    tree = ast.parse(source)
    changed = frozenset(_changed(tree))
    for statement in _module_level(tree):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_memory(value) or (
                name in changed and _is_mutable(value)
            ):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value) if (
                value is not None
                and not _is_read_only(annotation)
                and (_is_memory(value) or (name in changed and _is_mutable(value)))
            ):
                yield name
    for node in ast.walk(tree):
        match node:
            case ast.Global(names=names):
                yield from names
            case (
                ast.FunctionDef(name=name, decorator_list=decorators)
                | ast.AsyncFunctionDef(name=name, decorator_list=decorators)
            ) if any(_is_cache(each) for each in decorators):
                yield name
            case ast.Call(func=ast.Call(func=func)) if _is_cache(func):
                yield ast.unparse(node)


def store_writes(source: str) -> list[str]:
    """Calls that write to something called a store."""
    calls = (node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    methods = (func for func in calls if isinstance(func, ast.Attribute) and func.attr in WRITES)
    return [ast.unparse(func) for func in methods if ast.unparse(func.value).endswith("store")]


def _module_level(tree: ast.Module) -> Iterator[ast.stmt]:
    for statement in tree.body:
        yield statement
        if isinstance(statement, ast.ClassDef):
            yield from (each for each in statement.body if not _is_struct_field(statement, each))


def _is_struct_field(owner: ast.ClassDef, statement: ast.stmt) -> bool:
    """Defaults of structs are copied for each of them."""
    return isinstance(statement, ast.AnnAssign) and any("Struct" in ast.unparse(base) for base in owner.bases)


def _changed(tree: ast.Module) -> Iterator[str]:
    """Names of what is changed somewhere: an item set or deleted, or a method called that changes it."""
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                yield name
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if method in CHANGES:
                yield name


def _is_memory(value: ast.expr) -> bool:
    """Whether it is there to be filled."""
    return _is_mutable(value) and not (ast.unparse(value).strip("[]{}()") and isinstance(value, MUTABLE_LITERALS))


def _is_mutable(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        called = value.func.value if isinstance(value.func, ast.Subscript) else value.func
        return _last_name(called) in MUTABLE_CALLS
    return isinstance(value, MUTABLE_LITERALS)


def _is_read_only(annotation: ast.expr) -> bool:
    """``Final[Mapping[str, int]]`` and the like."""
    match annotation:
        case ast.Subscript(value=ast.Name(id="Final" | "ClassVar"), slice=inner):
            return _is_read_only(inner)
        case ast.Subscript(value=inner):
            return _last_name(inner) in READ_ONLY
    return _last_name(annotation) in READ_ONLY


def _is_cache(node: ast.expr) -> bool:
    return _last_name(node.func if isinstance(node, ast.Call) else node) in CACHES


def _last_name(node: ast.expr) -> str:
    return ast.unparse(node).rpartition(".")[2]


def modules() -> dict[str, str]:
    """The sources of the server by module."""
    paths = sorted(SERVER.rglob("*.py"))
    return {".".join(path.relative_to(SOURCE).with_suffix("").parts): path.read_text("utf-8") for path in paths}


def test_no_module_of_the_server_keeps_state() -> None:
    kept = {f"{module}.{name}" for module, source in modules().items() for name in state(source)}
    assert kept - MEMORIES.keys() == set(), "an application or its surface must hold it; see the module's docstring"
    assert MEMORIES.keys() - kept == set(), "allowed, and no longer there"


def test_memories_are_bounded() -> None:
    for module, source in modules().items():
        assert "maxsize=None" not in source, module
        assert "functools.cache\n" not in source, module


def test_one_module_writes_to_the_store() -> None:
    assert [module for module, source in modules().items() if store_writes(source)] == [WRITER]


@pytest.mark.parametrize(
    ("source", "kept"),
    [
        pytest.param("KEPT: Final = {}", ["KEPT"], id="map"),
        pytest.param("KEPT = []", ["KEPT"], id="list"),
        pytest.param("KEPT: dict[str, int] = dict()", ["KEPT"], id="call"),
        pytest.param("KEPT = collections.deque[int]()", ["KEPT"], id="call-of-generic-type"),
        pytest.param("class C:\n    seen = set()", ["seen"], id="attribute-of-class"),
        pytest.param("def f():\n    global kept\n    kept = 1", ["kept"], id="global"),
        pytest.param("@functools.lru_cache(maxsize=4)\ndef f(x): ...", ["f"], id="lru-cache"),
        pytest.param("@cache\ndef f(x): ...", ["f"], id="bare-cache"),
        pytest.param("f = functools.lru_cache(8)(g)", ["functools.lru_cache(8)(g)"], id="cache-by-call"),
        pytest.param("KEPT = {'a': 1}\ndef f(): KEPT['b'] = 2", ["KEPT"], id="table-that-is-written-to"),
        pytest.param("KEPT = ['a']\ndef f(): KEPT.append(2)", ["KEPT"], id="list-that-grows"),
        pytest.param("KEPT = {'a': 1}\ndef f(): return KEPT['a']", [], id="table-that-is-read"),
        pytest.param("TABLE: Final[Mapping[str, int]] = {'a': 1}", [], id="table-of-constants"),
        pytest.param("ORDER: Final = ('a', 'b')", [], id="tuple"),
        pytest.param("def f():\n    seen = set()", [], id="local"),
        pytest.param("class C(msgspec.Struct):\n    names: list[str] = []", [], id="field-of-struct"),
    ],
)
def test_state_is_found(source: str, kept: list[str]) -> None:
    assert list(state(source)) == kept


@pytest.mark.parametrize(
    ("source", "writes"),
    [
        pytest.param("self._store.create(key, draft)", True, id="create"),
        pytest.param("await services.store.commit(writes)", True, id="commit"),
        pytest.param("store.get(key)", False, id="read"),
        pytest.param("labels.update(more)", False, id="something-else"),
    ],
)
def test_writes_are_found(source: str, *, writes: bool) -> None:
    assert bool(store_writes(source)) is writes
