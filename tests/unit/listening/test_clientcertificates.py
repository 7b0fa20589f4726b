"""Handshakes with client certificates, good and bad, through memory instead of sockets."""

import ssl

import pytest

from drachma.listening import clientcertificates
from tests.conformance.policy import identities

pytestmark = pytest.mark.skipif(
    not clientcertificates.tolerate(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)),
    reason="the ssl module of this Python is not linked with a shared OpenSSL",
)


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> identities.Identities:
    return identities.make(tmp_path_factory.mktemp("people"))


def _server(people: identities.Identities) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(people.folder / "webhook.crt", people.folder / "webhook.key")
    context.load_verify_locations(people.folder / "ca.crt")
    context.verify_mode = ssl.CERT_OPTIONAL
    assert clientcertificates.tolerate(context)
    return context


def _client(person: identities.Person, newest: ssl.TLSVersion) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.maximum_version = newest
    if person.certificate is not None:
        context.load_cert_chain(person.certificate, person.key)
    return context


def _connect(
    server: ssl.SSLContext, client: ssl.SSLContext, session: ssl.SSLSession | None = None
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Return both ends of a connection after its handshake and a byte from the server."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        server.wrap_bio(to_server, to_client, server_side=True),
        client.wrap_bio(to_client, to_server, session=session),
    )
    for _ in range(10):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    ends[0].write(b"!")
    assert ends[1].read(1) == b"!"
    return ends


VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("cert-admin", True),
        ("cert-foreign", False),
        ("cert-expired", False),
        ("cert-server-only", False),
        ("admin", False),
    ],
)
def test_handshakes_succeed_and_only_good_certificates_are_verified(
    people: identities.Identities, name: str, want: bool, version: ssl.TLSVersion
) -> None:
    end, _ = _connect(_server(people), _client(people.people[name], version))
    assert clientcertificates.is_verified(end) is want
    assert (end.getpeercert(binary_form=True) is not None) is name.startswith("cert-")


@pytest.mark.parametrize("version", VERSIONS)
def test_sessions_are_not_resumed(people: identities.Identities, version: ssl.TLSVersion) -> None:
    """A session of an earlier connection must not bring a certificate that nothing has verified."""
    server, client = _server(people), _client(people.people["cert-foreign"], version)
    _, first = _connect(server, client)
    end, second = _connect(server, client, first.session)
    assert not second.session_reused
    assert not clientcertificates.is_verified(end)


def test_contexts_without_tolerance_trust_what_they_let_in() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    end = context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_side=True)
    assert clientcertificates.is_verified(end)


def test_a_context_that_no_connection_watches_stays_strict(people: identities.Identities) -> None:
    """Connections of another class, for instance of sockets, take no notes, and OpenSSL's refusal stands."""
    server = _server(people)
    server.sslobject_class = ssl.SSLObject
    with pytest.raises(ssl.SSLCertVerificationError):
        _connect(server, _client(people.people["cert-foreign"], ssl.TLSVersion.TLSv1_2))


def test_library_that_does_not_know_the_context_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    monkeypatch.setitem(clientcertificates._MODES, context.verify_mode, 99)
    assert not clientcertificates.tolerate(context)
    assert context.sslobject_class is ssl.SSLObject
