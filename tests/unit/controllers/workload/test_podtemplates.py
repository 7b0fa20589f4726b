"""Short names of templates."""

import pytest

from drachma.controllers.workload import podtemplates


@pytest.mark.parametrize(
    ("content", "collisions", "want"),
    [
        # As Go's hash/fnv and encoding/json have it.
        pytest.param({"a": 1}, 0, "d55c4ff5f", id="content"),
        pytest.param({"a": 1}, 1, "d55c4ff5d", id="after-a-collision"),
        pytest.param(
            {"spec": {"template": {"x": "<a&b>", "$patch": "replace"}}}, 0, "5c96c9f788", id="sorted-and-escaped"
        ),
    ],
)
def test_names_of_contents(content: dict[str, object], collisions: int, want: str) -> None:
    assert podtemplates.content_hash(content, collisions) == want


def test_json_as_go_writes_it() -> None:
    assert podtemplates.go_json({"b": "<&>\u2028", "a": [1, None]}) == rb'{"a":[1,null],"b":"\u003c\u0026\u003e\u2028"}'


def test_another_template_has_another_name() -> None:
    names = {podtemplates.template_hash({"a": number}, collisions) for number in (1, 2) for collisions in (0, 1)}
    assert len(names) == 4
