"""Decoding of request bodies from JSON, YAML or protobuf, with upstream's error messages."""
