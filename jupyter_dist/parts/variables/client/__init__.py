"""Variables of ranks in the Python client."""

from .holders import MemoryHolders
from .results import VariableTable

__all__ = ["MemoryHolders", "VariableTable"]
RESULTS = {"Variables": "VariableTable"}  # the class of an answer
