"""What pods and devices ask of a node: requests, resource names, ports, accounting policies, budgets, the ledger."""
