from cli.conftest import dist  # noqa: F401
from ownserver import client, groups_of_the_test, own_runtime, runtime_folder  # noqa: F401
