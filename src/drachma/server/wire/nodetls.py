"""TLS towards nodes: the certificate that this server shows them, and how it verifies theirs."""

import pathlib
import ssl

from drachma import errors
from drachma.server.pipeline.answer import Authority


class NodeTls:
    """TLS settings for connections to nodes.

    The certificates of nodes are verified by an authority that the operator names, and those of endpoints of this
    process by the certificate itself. Otherwise any certificate is accepted, as upstream does by default.
    """

    def __init__(
        self,
        files: tuple[pathlib.Path, pathlib.Path] | None = None,
        *,
        authority: pathlib.Path | None = None,
    ) -> None:
        """``files`` are the client certificate of this server and its key; None shows nodes no certificate.

        Raises:
            errors.RefusedFileError: the authority cannot be read.
        """
        self._files = files
        self.anonymous = _make_unverified_context()
        """For programs on a node's machine that are not its agent: they are not shown a certificate."""
        self.node = _make_unverified_context() if authority is None else _make_verified_context(authority)
        if files is not None:
            self.node.load_cert_chain(*files)

    def pin(self, certificate: bytes) -> ssl.SSLContext:
        """Return settings that accept this certificate (PEM) and no other."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        # One certificate serves all nodes of a process, so no host name is in it.
        context.check_hostname = False
        context.load_verify_locations(cadata=certificate.decode())
        if self._files is not None:
            context.load_cert_chain(*self._files)
        return context

    def extension(self, authority: Authority) -> ssl.SSLContext:
        """Return settings for an extension API server, which this server shows its client certificate.

        Raises:
            ssl.SSLError: the bundle of certificates cannot be read.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if authority.is_insecure:
            context = _make_unverified_context()
        elif authority.bundle:
            context.load_verify_locations(cadata=authority.bundle)
        else:
            context.load_default_certs()
        if self._files is not None:
            context.load_cert_chain(*self._files)
        return context


def _make_unverified_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _make_verified_context(authority: pathlib.Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(authority)
    except OSError as error:
        raise errors.RefusedFileError(
            f"authority of kubelets {authority}: cannot be read: {error.strerror or error}"
        ) from error
    return context
