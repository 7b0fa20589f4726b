"""Version of Kubernetes that drachma's API server and node agents follow."""

from typing import Final

import drachma

MINOR: Final = 37
"""Minor version of Kubernetes 1.x."""
TEXT: Final = f"v1.{MINOR}.0+drachma-{drachma.__version__}"
"""Version that servers and kubelets report. Clients read the Kubernetes version from it, as from vendors' versions."""
