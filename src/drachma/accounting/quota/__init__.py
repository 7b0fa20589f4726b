"""Charges of objects to the quotas of their namespace: upstream's evaluators, pure.

Admission asks :mod:`drachma.accounting.quota.charging` before it accepts a write, and the quota controller asks
:mod:`drachma.accounting.quota.recount` for the current use. Both use the evaluator of the object's kind
(:mod:`drachma.accounting.quota.evaluators`), so that charges and counts agree.
"""
