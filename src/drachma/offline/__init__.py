"""Answers without a server: what manifests and dumps of clusters hold, which devices claims would get, recorded cases.

Commands that work offline are made of it, and so are the tests that replay recorded answers.
"""
