"""A workload: what it asks for, what its status says, and what that becomes."""
