"""A group that gives its devices back while it is idle, and takes them again."""

from .part import ParkingOfGroup

__all__ = ["ParkingOfGroup"]
