"""The API kinds: one module a kind, plus their codec, defaults and conversion between versions.

Objects are immutable and in their v1 form; other versions exist only while bytes are read or written. Start at
:mod:`drachma.api.codec` (bytes and documents to objects and back) or :mod:`drachma.api.manifest` (whole files).
"""
