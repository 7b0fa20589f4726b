"""What objects charge to the quotas of their namespace, and whether there is room: upstream's evaluators, pure.

Admission asks :mod:`drachma.accounting.quota.charging` before it lets a write pass, the quota controller asks
:mod:`drachma.accounting.quota.recount` how much is in use. Both go by the evaluator of the object's kind
(:mod:`drachma.accounting.quota.evaluators`), so what was charged is what is counted.
"""
