"""Curves in the Python client."""

from jupyter_dist.parts.curves.reading import Curve

from .table import CurveTable

RESULTS = {"Curves": "CurveTable"}
__all__ = ["Curve", "CurveTable"]
