"""Addresses that a process listens on, as the kernel tells them."""

import ipaddress
import pathlib
import re
import socket

_LISTENING = "0A"


def listen_addresses(pid: int) -> set[tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]]:
    """Return the addresses and ports of TCP on which a process of this user listens."""
    inodes = set()
    for each in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            held = re.fullmatch(r"socket:\[(\d+)\]", str(each.readlink()))
        except FileNotFoundError:
            continue
        if held is not None:
            inodes.add(held[1])
    found = set()
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENING and fields[9] in inodes:
                host, _, port = fields[1].partition(":")
                found.add((ipaddress.ip_address(_network_order(host)), int(port, 16)))
    return found


def _network_order(text: str) -> bytes:
    """Return an address whose words are printed in the order of this machine."""
    words = [int(text[start : start + 8], 16) for start in range(0, len(text), 8)]
    return b"".join(socket.htonl(word).to_bytes(4, "big") for word in words)
