"""One group for the tests that need ranks."""

from onegroup import _no_names, group, notebook, shared_group  # noqa: F401  (fixtures)
from ownserver import client, groups_of_the_test, own_runtime, runtime_folder  # noqa: F401  (fixtures)
