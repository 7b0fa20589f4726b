"""Every port of the product is behind the one listener."""

import ast
import pathlib

import drachma

SOURCES = pathlib.Path(drachma.__file__).parent
LISTENERS = frozenset(
    {"AppRunner", "TCPSite", "SockSite", "start_http_server", "start_server", "connect_accepted_socket"}
)
"""Ways to serve a port that have no limits of their own, and the one that the listener uses."""


def test_only_the_listener_serves_ports() -> None:
    users = {
        path.relative_to(SOURCES).parts[0]
        for path in SOURCES.rglob("*.py")
        if any(name in (text := path.read_text()) for name in LISTENERS)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr in LISTENERS
    }
    assert users == {"listening"}
