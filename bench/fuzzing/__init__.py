"""Fuzz run against a whole control plane: requests generated from the OpenAPI documents that the server serves.

``python -m bench.fuzzing --help`` lists the options.
"""
