"""Templates from which pods get claims of their own."""

from typing import Final

from drachma.api import resourceclaimtemplate
from drachma.server.kinds.resource import claimstrategy, devicekind

KIND: Final = devicekind.of(resourceclaimtemplate.ResourceClaimTemplate, strategy=claimstrategy.ClaimStrategy)
