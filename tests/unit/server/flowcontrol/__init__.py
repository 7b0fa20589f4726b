"""Priority and fairness."""
