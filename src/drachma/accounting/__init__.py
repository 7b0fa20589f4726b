"""Accounting of pods and devices on nodes: requests, resource names, ports, policies, budgets, ledgers and quotas."""
