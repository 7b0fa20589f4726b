"""Restart matrix: every component under every fault, with load, and invariants over the whole history.

``python -m bench.soak --help`` lists the options; ``make soak`` runs a short round and ``make soak-long`` 1,000 kills.
"""
