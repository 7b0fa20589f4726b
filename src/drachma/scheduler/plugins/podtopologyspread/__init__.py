"""PodTopologySpread: pods that are alike are spread evenly over topologies, as they require or prefer."""
