"""`jupyter dist save`, `restore`, `saves`, `last-saves` and `delete-save`."""

import json
import os
import re
import signal

from cli.conftest import group  # noqa: F401  (fixture)
from ownserver import dist  # noqa: F401  (fixture)
from waits import until


def test_a_group_is_saved_listed_restored_and_the_save_deleted(dist, group, tmp_path):  # noqa: F811
    group.run("kept = 3", check=True)
    place = ("--folder", str(tmp_path / "saves"))
    assert dist("save", "half", "-g", group.name, *place).stdout.startswith("Saved 'half': ")
    assert json.loads(dist("saves", *place, "--json").stdout)["saves"][0]["world_size"] == 2
    group.run("kept = 0", check=True)
    assert dist("restore", "half", "-g", group.name, *place).stdout.startswith("Restored 'half': ")
    assert group.gather("kept") == {0: 3, 1: 3}
    assert re.search(rf"(?m)^from-shell, 2 ranks: 'half' of .* in {place[1]}", dist("last-saves").stdout)
    dist("save", "first", "-g", group.name)
    assert re.match(r"Group 'again': 2 ranks ready", dist("start", "again", "--restore", "first").stdout)
    assert "3" in dist("exec", "-g", "again", "print(kept)").stdout
    os.kill(group.client.attach("again").status().ranks[1].pid, signal.SIGKILL)
    until(lambda: group.client.attach("again").status().state == "degraded")
    assert "of the save 'first'." in dist("replace", "again", "--state", "save", "--save", "first").stdout
    assert "3" in dist("exec", "-g", "again", "-r", "1", "print(kept)").stdout
    dist("stop", "again")
    assert "freed bytes: " in dist("delete-save", "half", *place).stdout
    assert dist("saves", *place).stdout == "There are no saves.\n"
    refused = dist("restore", "half", "-g", group.name, *place, status=1)
    assert refused.stderr.startswith("jupyter dist restore: There is no save 'half'")
