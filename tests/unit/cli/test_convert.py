"""``drachma convert`` as a user runs it: all or nothing, and errors that name file, document and path."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from drachma.api import manifest
from drachma.cli import root

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: one
spec:
  devices:
    requests:
    - exactly:
        deviceClassName: gpu.example.com
      name: gpu
"""
POD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n  hostPID: true\n"


def run(*arguments: str, stdin: str | bytes = "") -> Result:
    return CliRunner().invoke(root.app, ["convert", *arguments], input=stdin)


def test_converts_to_yaml(tmp_path: Path) -> None:
    (tmp_path / "claim.yaml").write_text(CLAIM)
    result = run("-f", str(tmp_path / "claim.yaml"), "--to", "resource.k8s.io/v1beta1")
    assert result.exit_code == 0
    assert result.stdout == (
        "apiVersion: resource.k8s.io/v1beta1\nkind: ResourceClaim\nmetadata:\n  name: one\nspec:\n  devices:\n"
        "    requests:\n    - deviceClassName: gpu.example.com\n      name: gpu\n"
    )


def test_folders_standard_input_and_json(tmp_path: Path) -> None:
    (tmp_path / "b.yml").write_text(POD)
    (tmp_path / "a.yaml").write_text(CLAIM)
    (tmp_path / "notes.txt").write_text("not a manifest")
    result = run("-f", str(tmp_path), "-f", "-", "--to", "resource.k8s.io/v1beta2", "-o", "json", stdin=CLAIM)
    assert result.exit_code == 0
    items = json.loads(result.stdout)["items"]
    assert [item["apiVersion"] for item in items] == ["resource.k8s.io/v1beta2", "v1", "resource.k8s.io/v1beta2"]
    assert items[1] == manifest.read(POD)[0].content


def test_lists_are_taken_apart() -> None:
    text = json.dumps(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClassList",
            "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}],
        }
    )
    result = run("-f", "-", "--to", "resource.k8s.io/v1beta1", stdin=text)
    assert result.exit_code == 0
    assert [document.content["metadata"]["name"] for document in manifest.read(result.stdout)] == ["a", "b"]


def test_there_and_back_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "claim.yaml").write_text(CLAIM)
    beta = run("-f", str(tmp_path), "--to", "resource.k8s.io/v1beta1").stdout
    assert run("-f", "-", "--to", "resource.k8s.io/v1", stdin=beta).stdout == CLAIM


@pytest.mark.parametrize(
    ("text", "want_error"),
    [
        pytest.param("a: [", "standard input: document 1: line 2, column 1: not YAML", id="broken-yaml"),
        pytest.param("", "standard input: is empty: expected at least one document", id="empty"),
        pytest.param("a: 1\na: 2\n", "standard input: document 1: line 2: duplicate key a", id="duplicate-key"),
        pytest.param(
            CLAIM + "---\n" + CLAIM.replace("one", "two").replace("gpu.example.com", "[]"),
            "standard input: document 2: ResourceClaim two: spec.devices.requests[0].exactly.deviceClassName: "
            "expected a string, found a list",
            id="wrong-type",
        ),
        pytest.param(CLAIM.replace("ResourceClaim", "Gadget"), "document 1: unknown kind Gadget", id="unknown-kind"),
        pytest.param(CLAIM.replace("io/v1", "io/v9"), "does not exist in resource.k8s.io/v9", id="unknown-version"),
        pytest.param(
            CLAIM.replace("exactly", "exactlyy"),
            "document 1: ResourceClaim one: spec.devices.requests[0].exactlyy: unknown field",
            id="unknown-field",
        ),
        pytest.param(
            "apiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {name: r}\n",
            "kind DeviceTaintRule does not exist in resource.k8s.io/v1beta1: it is served in resource.k8s.io/v1,",
            id="kind-not-in-target-version",
        ),
        pytest.param("- a\n- b\n", "document 1: expected an object, found a list", id="not-an-object"),
        pytest.param(
            '{"apiVersion": "v1", "kind": "List", "items": {}}',
            "document 1: items: expected a list, found an object",
            id="items-not-a-list",
        ),
        pytest.param(
            '{"apiVersion": "v1", "kind": "List", "items": [7]}',
            "document 1, items[0]: expected an object, found number 7",
            id="item-not-an-object",
        ),
        pytest.param("x" * 20_000_000, "standard input: has more bytes: must have at most", id="twenty-megabytes"),
    ],
)
def test_bad_documents(text: str, want_error: str) -> None:
    result = run("-f", "-", "--to", "resource.k8s.io/v1beta1", stdin=text)
    assert result.exit_code == 1
    assert want_error in result.stderr
    assert result.stdout == ""


def test_one_bad_document_stops_all_and_every_error_is_shown(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(CLAIM)
    (tmp_path / "b.yaml").write_text("kind: Pod\n")
    (tmp_path / "c.yaml").write_text("{")
    result = run("-f", str(tmp_path), "-f", str(tmp_path / "none.yaml"), "--to", "resource.k8s.io/v1beta1")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert [line.split(": ")[1] for line in result.stderr.splitlines()] == [
        str(tmp_path / name) for name in ("b.yaml", "c.yaml", "none.yaml")
    ]


def test_unknown_fields_may_be_lost_on_request() -> None:
    text = CLAIM.replace("metadata:", "extra: 1\nmetadata:")
    warned = run("-f", "-", "--to", "resource.k8s.io/v1beta1", "--validate", "warn", stdin=text)
    assert (warned.exit_code, "warning: ResourceClaim one: extra: unknown field" in warned.stderr) == (0, True)
    assert run("-f", "-", "--to", "resource.k8s.io/v1beta1", "--validate", "ignore", stdin=text).stderr == ""


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    result = run("-f", str(tmp_path), "--to", "resource.k8s.io/v1")
    assert (result.exit_code, "the folder has no manifest" in result.stderr) == (1, True)


def test_unknown_target(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["drachma", "convert", "-f", "-", "--to", "resource.k8s.io/v3"])
    with pytest.raises(SystemExit) as stopped:
        root.main()
    assert stopped.value.code == 2
    assert "drachma: --to resource.k8s.io/v3: unknown version, expected one of" in capsys.readouterr().err


def test_other_groups_and_empty_documents_pass() -> None:
    ingress = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: i\nspec:\n  anything: goes\n"
    result = run("-f", "-", "--to", "resource.k8s.io/v1beta1", stdin=f"---\n---\n{ingress}---\n# nothing\n---\n{CLAIM}")
    assert result.exit_code == 0
    written = result.stdout.split("---\n")
    assert len(written) == 2
    assert written[0] == ingress
