"""A kernel beside a group of ranks."""

from onegroup import notebook  # noqa: F401  (a fixture)
