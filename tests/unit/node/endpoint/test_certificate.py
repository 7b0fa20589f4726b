"""Serving certificates of an endpoint."""

import datetime as dt
import pathlib

import pytest

from drachma import errors
from drachma.node.endpoint import certificate
from drachma.server.access import certificates

NOW = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)


def test_a_certificate_of_the_operators(tmp_path: pathlib.Path) -> None:
    files = certificates.ensure(tmp_path, hosts=["n1.example.com"], now=NOW)
    serving = certificate.load(files.certificate, files.key, client_authority=files.authority.read_bytes())
    assert serving.certificate == files.certificate.read_bytes()
    assert [each["subject"] for each in serving.context.get_ca_certs()] == [((("commonName", "drachma-ca"),),)]


@pytest.mark.parametrize("absent", ["certificate", "key"])
def test_files_that_are_none(tmp_path: pathlib.Path, absent: str) -> None:
    files = certificates.ensure(tmp_path, hosts=["n1.example.com"], now=NOW)
    getattr(files, absent).write_text("nothing")
    with pytest.raises(errors.NodeError, match=r"serving certificate .*server\.crt with key .*server\.key"):
        certificate.load(files.certificate, files.key, client_authority=b"")
