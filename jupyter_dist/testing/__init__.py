"""What tests of other packages need: the contract of launchers. Requires pytest (docs/extending.md)."""

import pytest

pytest.register_assert_rewrite("jupyter_dist.testing.launchers")
