"""Answers without a server: manifests and dumps of clusters, allocations of claims, recorded cases.

Commands that work offline and tests that replay recorded answers are built on it.
"""
