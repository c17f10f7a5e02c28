"""The environment's model, its capture and differences, and the hardware class. Imports the standard library only."""

from validator.environment.claims import from_claims
from validator.environment.differences import EnvironmentDifference, can_change_bits, difference
from validator.environment.facts import Environment, Fact, Kind, Origin
from validator.environment.host import Gpu, Host, hardware_class, observe_host
from validator.environment.variables import capture_variables

__all__ = [
    "Environment",
    "EnvironmentDifference",
    "Fact",
    "Gpu",
    "Host",
    "Kind",
    "Origin",
    "can_change_bits",
    "capture_variables",
    "difference",
    "from_claims",
    "hardware_class",
    "observe_host",
]
