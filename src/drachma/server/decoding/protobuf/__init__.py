"""Request bodies in protobuf, which Go clients prefer for everything that has a Go type; answers are always JSON."""

from drachma.server.decoding.protobuf.decoding import decode, decode_delete_options

__all__ = ["decode", "decode_delete_options"]
