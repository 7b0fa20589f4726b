"""Answers in the negotiated form: objects, lists, tables, metadata only."""
