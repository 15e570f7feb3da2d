"""`jupyter dist park` and `resume`."""

from cli.conftest import group  # noqa: F401  (fixture)
from ownserver import client, dist, groups_of_the_test, own_runtime, runtime_folder  # noqa: F401  (fixtures)
from waits import until


def test_a_group_that_a_command_answers_is_printed_as_its_status(dist, group):  # noqa: F811
    assert f"Group '{group.name}': park" in dist("park", group.name, "--to", "file").stdout
    until(lambda: group.status().state == "parked")
    assert f"Group '{group.name}'" in dist("resume", group.name).stdout.splitlines()[0]
    assert "{" not in dist("resume", group.name).stdout
