"""Texts of manifests: what is read how, and what is refused with which message."""

from typing import Any

import pytest

from drachma import errors
from drachma.api import manifest, struct, yamldialect

DEEP = yamldialect.MAX_DEPTH + 1


def contents(text: str | bytes) -> list[Any]:
    return [document.content for document in manifest.read(text)]


@pytest.mark.parametrize(
    ("scalar", "want"),
    [
        ("12", 12),
        ("-3", -3),
        ("0x1F", 31),
        ("017", 15),
        ("0o17", 15),
        ("1_000", 1000),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("true", True),
        ("yes", True),
        ("null", None),
        ("~", None),
        ("12:30", "12:30"),
        ("2026-01-01", "2026-01-01"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("1.2.3", "1.2.3"),
        ("1Gi", "1Gi"),
        ("'1e3'", "1e3"),
        ("0.", 0.0),
        ("e3", "e3"),
        ("=", "="),
    ],
)
def test_scalars_as_kubernetes_reads_them(scalar: str, want: object) -> None:
    assert contents(f"key: {scalar}") == [{"key": want}]


def test_scalar_keys_become_strings() -> None:
    assert contents("1: a\ntrue: b\nc: d\n") == [{"1": "a", "true": "b", "c": "d"}]


def test_many_documents_know_their_number_and_line() -> None:
    read = manifest.read("a: 1\n---\n# comment\nb: 2\n---\n{c: 3}\n")
    assert [(document.number, document.line) for document in read] == [(1, 1), (2, 4), (3, 6)]


def test_merge_keys_and_aliases() -> None:
    assert contents("a: &x {k: 1}\nb: {<<: *x, l: 2}\nc: *x\n") == [
        {"a": {"k": 1}, "b": {"k": 1, "l": 2}, "c": {"k": 1}}
    ]


def test_json_with_byte_order_mark() -> None:
    assert contents(b'\xef\xbb\xbf{"a": 1}') == [{"a": 1}]


@pytest.mark.parametrize(
    ("text", "want_error"),
    [
        pytest.param("", "is empty: expected at least one document", id="empty-text"),
        pytest.param("# only a comment\n", "is empty: expected at least one document", id="only-a-comment"),
        pytest.param("---\n---\n# nothing\n", "is empty: expected at least one document", id="only-empty-documents"),
        pytest.param("a: [1\n", "document 1: line 2, column 1: not YAML: while parsing a flow", id="unclosed"),
        pytest.param("a: 1\n---\nb: 'x\n", "document 2: line 4, column 1: not YAML:", id="broken-second-document"),
        pytest.param("a: 1\nb:\n  c: 1\n  c: 2\n", "document 1: line 4: duplicate key c", id="duplicate-yaml-key"),
        pytest.param('{"a": {"b": 1, "b": 2}}', "document 1: duplicate key a.b", id="duplicate-json-key"),
        pytest.param('{"a": NaN}', "document 1: NaN is not a JSON value", id="nan"),
        pytest.param("? [a]\n: 1\n", "document 1: line 1: expected a string as key, found a list", id="list-as-key"),
        pytest.param("a: *nope\n", "not YAML: found undefined alias", id="undefined-alias"),
        pytest.param("a: &x [*x]\n", "document 1: an alias contains itself", id="recursive-alias"),
        pytest.param("a: !!python/object:os.system x\n", "could not determine a constructor", id="python-tag"),
        pytest.param("a: !!timestamp x\n", "could not determine a constructor", id="timestamp-tag"),
        pytest.param("a: !!int x\n", "document 1: invalid literal for int()", id="not-an-int"),
        pytest.param(b"a: \xff\n", "is not UTF-8: invalid start byte at byte 3", id="not-utf-8"),
        pytest.param("a: \x00", "not YAML: unacceptable character #x0000", id="control-character"),
        pytest.param("[" * DEEP + "]" * DEEP, f"nested deeper than {yamldialect.MAX_DEPTH} levels", id="deep-flow"),
        pytest.param("- " * 100_000 + "a", f"nested deeper than {yamldialect.MAX_DEPTH} levels", id="deep-block"),
        pytest.param('{"a":' * 9999 + "1" + "}" * 9999, "nested deeper than", id="deep-json"),
    ],
)
def test_refused(text: str | bytes, want_error: str) -> None:
    with pytest.raises(errors.DecodeError) as caught:
        manifest.read(text)
    assert want_error in str(caught.value)


def test_aliases_that_explode_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 8)]
    with pytest.raises(errors.DecodeError, match="aliases stand for more than"):
        manifest.read("\n".join(lines))


def test_twenty_megabytes_are_refused() -> None:
    with pytest.raises(errors.DecodeError, match=r"has 20000000 bytes: must have at most 16777216"):
        manifest.read(b"x" * 20_000_000)


@pytest.mark.parametrize(
    "text", ["1e3", "017", "yes", "12:30", "2026-01-01", "null", "", "a\nb", " x", "0x1", "é", "="]
)
def test_written_strings_are_read_as_strings(text: str) -> None:
    assert contents(manifest.write_yaml([{"key": text}])) == [{"key": text}]


@pytest.mark.parametrize(
    ("value", "want"),
    [
        pytest.param(struct.ABSENT_TEXT, "", id="text"),
        pytest.param(struct.ABSENT_INT, 0, id="int"),
        pytest.param(struct.ABSENT_TUPLE, [], id="tuple"),
        pytest.param(struct.ABSENT_MAP, {}, id="map"),
    ],
)
def test_absent_values_are_written_as_what_they_are_equal_to(value: object, want: object) -> None:
    assert contents(manifest.write_yaml([{"key": value}])) == [{"key": want}]
    assert contents(manifest.write_json([{"key": value}])) == [{"key": want}]


def test_several_documents_as_json_are_a_list() -> None:
    assert contents(manifest.write_json([{"a": 1}])) == [{"a": 1}]
    assert contents(manifest.write_json([{"a": 1}, {"b": 2}])) == [
        {"apiVersion": "v1", "kind": "List", "items": [{"a": 1}, {"b": 2}]}
    ]


def test_a_large_text_that_was_meant_as_json_names_the_place_where_it_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yamldialect, "MAX_NODES", 10)
    text = '{"kind": "List", "items": [\n' + "1,\n" * 20
    with pytest.raises(errors.DecodeError, match="document 1: line 22, column 1: not JSON: Expecting value"):
        manifest.read(text)
