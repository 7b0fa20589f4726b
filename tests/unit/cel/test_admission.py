import pytest

from drachma.cel import admission, program, types
from drachma.cel.runtime import authorizers


def _compile(expression: str, *results: types.Type, has_params: bool = False) -> program.Program:
    return admission.Compiler(has_params=has_params, composes=False).compile(expression, *results)


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        pytest.param("1 + 1", "must evaluate to bool but got int", id="wrong-type"),
        pytest.param("object.x", "must evaluate to bool but got dyn", id="any-type"),
        pytest.param(
            "params.x == 1",
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')\n"
            " | params.x == 1\n | ^",
            id="no-params",
        ),
        pytest.param(
            "variables.x",
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'variables' (in container '')\n"
            " | variables.x\n | ^",
            id="no-variables",
        ),
        pytest.param(
            "request.nope == ''",
            "compilation failed: ERROR: <input>:1:8: undefined field 'nope'\n | request.nope == ''\n | .......^",
            id="no-such-field-of-the-request",
        ),
    ],
)
def test_refused(expression: str, want: str) -> None:
    with pytest.raises(program.CompilationError) as caught:
        _compile(expression, types.BOOL)
    assert str(caught.value) == want


def test_bindings_are_for_devices_only() -> None:
    with pytest.raises(program.CompilationError, match="undeclared reference to 'bind'"):
        _compile("cel.bind(x, 1, x == 1)", types.BOOL)


def test_one_of_several_types() -> None:
    with pytest.raises(program.CompilationError, match=r"^must evaluate to one of \[string null_type\] but got int$"):
        _compile("1", types.STRING, types.NULL)
    assert _compile("null", types.STRING, types.NULL).result == types.NULL


def test_params_where_there_are_some() -> None:
    assert _compile("params.x == 1", types.BOOL, has_params=True).evaluate_variables({"params": {"x": 1}}).value is True


def test_variables_know_those_before_them() -> None:
    compiler = admission.Compiler(has_params=False, composes=True)
    compiler.declare("texts", "['a', 'b']")
    assert isinstance(compiler.declare("first", "variables.texts[0]"), program.Program)
    assert compiler.compile("variables.first").result == types.STRING
    broken = compiler.declare("broken", "variables.later")
    assert isinstance(broken, program.CompilationError)
    assert compiler.compile("variables.broken").result == types.DYN


def test_typed_objects() -> None:
    subjects = admission.Subjects(
        object=types.object_type("Thing"), objects={"Thing": {"size": types.INT}, "Other": {"x": types.INT}}
    )
    compiler = admission.Compiler(has_params=False, composes=True, subjects=subjects)
    assert compiler.compile("object.size > oldObject.size").result == types.BOOL
    with pytest.raises(program.CompilationError, match="undefined field 'nope'"):
        compiler.compile("object.nope == 1")


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        pytest.param(
            "authorizer.group('apps').resource('deployments').subresource('scale').namespace('n').name('d')"
            ".check('get').allowed()",
            authorizers.Question(
                verb="get", group="apps", resource="deployments", subresource="scale", namespace="n", name="d"
            ),
            id="resource",
        ),
        pytest.param(
            "authorizer.path('/healthz').check('get').allowed()",
            authorizers.Question(verb="get", path="/healthz"),
            id="path",
        ),
        pytest.param(
            "authorizer.serviceAccount('ns', 'sa').group('').resource('pods').fieldSelector('a=b').labelSelector('c')"
            ".check('list').allowed()",
            authorizers.Question(
                verb="list",
                subject=authorizers.ServiceAccount("ns", "sa"),
                resource="pods",
                field_selector="a=b",
                label_selector="c",
            ),
            id="service-account-with-selectors",
        ),
    ],
)
def test_authorizer_asks(expression: str, want: authorizers.Question) -> None:
    questions: list[authorizers.Question] = []

    def ask(question: authorizers.Question) -> authorizers.Decision:
        questions.append(question)
        return authorizers.Decision(allowed=True)

    result = _compile(expression, types.BOOL).evaluate_variables({"authorizer": authorizers.Authorizer(ask)})
    assert result.value is True
    assert questions == [want]
    assert result.cost > 350_000


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        pytest.param("authorizer.path(' ').check('get').allowed()", "path must not be empty", id="empty-path"),
        pytest.param(
            "authorizer.group('').resource('').check('get').allowed()", "resource must not be empty", id="no-resource"
        ),
        pytest.param(
            "authorizer.serviceAccount('a.b', 'c').path('/').check('get').allowed()",
            "Invalid service account namespace",
            id="bad-namespace",
        ),
        pytest.param(
            "authorizer.serviceAccount('a', 'c/d').path('/').check('get').allowed()",
            "Invalid service account name",
            id="bad-name",
        ),
    ],
)
def test_authorizer_refuses(expression: str, want: str) -> None:
    authorizer = authorizers.Authorizer(lambda _question: authorizers.Decision(allowed=True))
    result = _compile(expression, types.BOOL).evaluate_variables({"authorizer": authorizer})
    assert str(result.value) == want


def test_decision_says_why() -> None:
    authorizer = authorizers.Authorizer(
        lambda _question: authorizers.Decision(allowed=False, reason="because", error="broken")
    )
    chain = "authorizer.path('/').check('get')"
    for accessor, want in (("reason()", "because"), ("error()", "broken"), ("errored()", True), ("allowed()", False)):
        assert _compile(f"{chain}.{accessor}").evaluate_variables({"authorizer": authorizer}).value == want
