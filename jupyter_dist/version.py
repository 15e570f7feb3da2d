"""The version of the package."""

try:
    from ._version import __version__
except ImportError:  # not installed: run from a source tree
    __version__ = "0.0.0.dev0"

__all__ = ["__version__"]
