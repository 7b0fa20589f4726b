"""The values and functions of CEL at run time: what compiled expressions call.

One module a concept; implementations are keyed by upstream's overload ids and collected in ``library``.
"""
