"""nbdistributed's timeline: what ran where, and for how long, in a file of its own."""

import json
import time


def test_the_timeline_of_a_group(notebook):
    notebook.run("%timeline_clear")
    code = "import time; began = time.monotonic(); time.sleep(0.2 + 2 * rank); print(time.monotonic() - began)"
    began = time.monotonic()
    measured = dict(notebook.run(f"%%distributed\n\n# wait\n{code}").said)
    took = time.monotonic() - began
    notebook.run("%%rank 1\n1 / 0")
    notebook.run("local = 'not in it'")
    table = notebook.run("%timeline_debug")
    assert table.displays == []
    head, slow, failed = table.text.splitlines()
    assert head == "Group 'lesson': 2 cells"
    assert "ranks 0-1" in slow
    assert slow.endswith("# wait")
    assert "ranks 1 " in failed
    assert "error" in failed
    assert failed.endswith("1 / 0")

    saved = notebook.run("%timeline_save")
    path = notebook.folder / "lesson-timeline.json"
    assert saved.text == f"2 cells in {path}\n"
    assert saved.displays == []
    first, second = json.loads(path.read_text())["cells"]
    # Between what each rank and what this test measured: how long a busy machine takes is not known.
    seconds = first["rank_seconds"]
    assert list(seconds) == ["0", "1"]
    assert all(float(measured[rank]) - 0.001 <= seconds[rank] <= took for rank in seconds)  # they are rounded
    quickest, slowest = sorted(seconds, key=seconds.get)
    assert f"{seconds[quickest]:.2f} s ({quickest}) to {seconds[slowest]:.2f} s ({slowest})" in slow
    assert first["started_at"] <= first["ended_at"] <= second["started_at"]
    assert (second["ranks"], second["state"], list(second["rank_seconds"])) == ("1", "error", ["1"])


def test_what_goes_wrong_is_said(notebook):
    assert "cannot be written: Is a directory" in notebook.run("%timeline_save /tmp").error
    assert notebook.run("%timeline_save a b").error.startswith("DistError: Unrecognized arguments: b")
    assert "was cleared" in notebook.run("%timeline_clear").text
    assert notebook.run("%timeline_debug").text == "Group 'lesson': 0 cells\n"
    notebook.run("%timeline_save other.json")
    assert json.loads((notebook.folder / "other.json").read_text())["cells"] == []
