"""Controllers: loops that bring the cluster to the state that its objects describe, written against the client only."""
