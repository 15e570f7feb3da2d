"""`jupyter dist curves`."""

import json

from cli.conftest import group  # noqa: F401  (fixture)
from ownserver import dist  # noqa: F401  (fixture)


def test_curves_of_a_cell(dist, group):  # noqa: F811
    ran = group.run("for i in range(4): print('step', i, 'loss', 1 / (i + 1) + rank)").execution["id"]
    assert "loss   ranks 0-1  4        0-3    1.5    0.75  0.25    2" in dist("curves", "-g", group.name).stdout
    csv = dist("curves", "-g", group.name, "--execution", ran, "--csv").stdout.splitlines()
    assert csv[:2] == ["curve,step,rank,value", "loss,0,0,1.0"]
    assert json.loads(dist("curves", "-g", group.name, "--json").stdout)["curves"][0]["ranks"][1]["values"][0] == 2.0
