"""Controllers: loops that bring the cluster to where its objects say it should be, written against the client only."""
