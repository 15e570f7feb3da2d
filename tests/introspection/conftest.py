"""A rank, and one group for all that these tests run."""

from onegroup import _no_names, group, notebook, shared_group  # noqa: F401  (fixtures)
from ownserver import client, groups_of_the_test, own_runtime, runtime_folder  # noqa: F401  (fixtures)
from rank.conftest import make_group, rank, shared, zygote  # noqa: F401  (fixtures)
