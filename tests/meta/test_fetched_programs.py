"""Programs that tests download are compared with pinned digests before they are used."""

import hashlib
import pathlib

import pytest

from tests import kubectlprogram


def test_another_kubectl_is_not_used(tmp_path: pathlib.Path) -> None:
    (tmp_path / "kubectl").write_bytes(b"#!/bin/sh\n")
    with pytest.raises(ValueError, match=r"kubectl: has the SHA-256 .*, expected .*; it is not used"):
        kubectlprogram.script().fetch(tmp_path)


def test_the_pinned_kubectl_is_used(tmp_path: pathlib.Path) -> None:
    script = kubectlprogram.script()
    (tmp_path / "kubectl").write_bytes(b"#!/bin/sh\n")
    script.DIGEST = hashlib.sha256(b"#!/bin/sh\n").hexdigest()
    assert script.fetch(tmp_path) == tmp_path / "kubectl"
