"""Everything that the containers of a pod are started with on nodes where they really run."""
