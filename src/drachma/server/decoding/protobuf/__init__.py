"""Request bodies in protobuf, which Go clients prefer for kinds with a Go type; responses are always JSON."""

from drachma.server.decoding.protobuf.decoding import decode, decode_delete_options

__all__ = ["decode", "decode_delete_options"]
