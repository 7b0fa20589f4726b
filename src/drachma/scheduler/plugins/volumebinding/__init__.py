"""VolumeBinding: pods go where their volumes can be used, and volumes are bound once their pods have a node."""
