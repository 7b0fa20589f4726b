"""Answers in the form that the client asked for: objects, lists, tables, metadata alone."""
