"""DynamicResources: claims are allocated, reserved and checked before a pod is bound (KEP-4381, KEP-4816, KEP-5517)."""
