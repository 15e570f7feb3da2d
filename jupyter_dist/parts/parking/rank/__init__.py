"""Moves the storages of a rank's tensors away from the device, and back."""

from .part import ParkingOfRank

__all__ = ["ParkingOfRank"]
