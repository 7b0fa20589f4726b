"""The Node object and the lease of an agent, and the addresses at which its node is reached."""
