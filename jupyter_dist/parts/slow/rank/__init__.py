"""Measures the time of a running cell on this rank: samples of its stack, arrivals at collectives, pauses, growth."""

from .meter import PaceMeter

__all__ = ["PaceMeter"]
