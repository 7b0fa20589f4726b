"""PodTopologySpread: spreads pods of a group evenly over topologies, as they require or prefer."""
