"""The notation of types: fields and marks, field numbers, texts, and types of other packages."""

import pytest

from drachma.server import schema
from drachma.server.schema import model, notation

THINGS = notation.Types(
    "io.k8s.api.core.v1",
    """\
Thing!: name=str@types.UID*
    port=int32/80 parts={Part:key,kind}*~ whole=Part!~+ tags={str}~ rest=[Part]~key labels=<str> fixed=<<str>>
Part: key=str* kind=str/x opaque=RawExtension^Configuration
""",
    numbers="""\
Thing: name 5:port? +Whole
Whole: parts labels
""",
    texts="""\
Thing: Something.
Thing.name: What it is called.
""",
)


def test_fields_and_marks() -> None:
    thing, part = THINGS.object("Thing"), THINGS.object("Part")
    fields = thing.fields
    assert (thing.definition, thing.atomic, part.atomic) == ("io.k8s.api.core.v1.Thing", True, False)
    assert (fields["name"].required, fields["name"].default, fields["port"].default) == (True, "", 80)
    assert (fields["name"].go_type, part.fields["opaque"].go_parent) == ("types.UID", "Configuration")
    assert fields["parts"].type == schema.ListOf(part, ("key", "kind"))
    assert (fields["parts"].merges, fields["parts"].merge_key) == (True, "key")
    assert (fields["whole"].filled, fields["whole"].merges, fields["whole"].retains_keys) == (True, False, True)
    assert (fields["tags"].type, fields["tags"].merge_key) == (schema.ListOf(part.fields["key"].type, ()), "")
    assert (fields["rest"].type, fields["rest"].merge_key) == (schema.ListOf(part), "key")
    assert isinstance(fields["labels"].type, schema.MapOf)
    assert isinstance(fields["fixed"].type, schema.MapOf)
    assert fields["fixed"].type.atomic


def test_required_pointers_are_not_filled() -> None:
    types = notation.Types("io.k8s.api.core.v1", "Thing: value=str* pointer=str?*")
    fields = types.object("Thing").fields
    assert (fields["value"].required, fields["value"].filled) == (True, True)
    assert (fields["pointer"].required, fields["pointer"].filled) == (True, False)


def test_numbers() -> None:
    message = THINGS.object("Thing").message
    assert [(number, each.name, each.is_pointer) for number, each in message.items()] == [
        (1, "name", False),
        (5, "port", True),
        (6, "Whole", False),
    ]
    assert message[6].embedded == {1: model.Numbered("parts"), 2: model.Numbered("labels")}
    assert THINGS.object("Part").message == {}


def test_texts() -> None:
    thing = THINGS.object("Thing")
    assert (thing.description, thing.fields["name"].description) == ("Something.", "What it is called.")
    assert THINGS.object("Part").description == ""


@pytest.mark.parametrize("text", ["name", "name=[str", "na+me=str", "name=str&"])
def test_malformed_fields_are_refused(text: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        notation.Types("", "").field(text)


def test_types_of_one_name_in_two_packages_are_two_types() -> None:
    other = notation.Types("io.k8s.api.other.v1", "Part: own=str\nWhole: part=Part thing=Thing", uses=(THINGS,))
    whole = other.object("Whole")
    assert whole.fields["part"].type is other.object("Part")
    assert whole.fields["part"].type is not THINGS.object("Part")
    assert whole.fields["thing"].type is THINGS.object("Thing")


def test_a_type_that_nobody_has() -> None:
    with pytest.raises(KeyError, match="Nope"):
        notation.Types("", "Whole: part=Nope", uses=(THINGS,)).object("Whole")


def test_a_type_that_refers_to_itself() -> None:
    trees = notation.Types("com.example.v1", "Tree: below={Tree:name}~ name=str* other=Branch\nBranch: trees=<Tree>")
    tree = trees.object("Tree")
    assert tree.fields["below"].type == schema.ListOf(tree, ("name",))
    assert trees.object("Branch").fields["trees"].type == schema.MapOf(tree)
    assert repr(tree) == "Object(com.example.v1.Tree)"
