"""Records of kinds: names, types, table columns, and the strategy that reads, prepares and validates objects."""
