"""A rank's log: the conversion of records, and what slow followers get."""

from records import Recorder

from jupyter_dist.server.mirror import logs
from jupyter_dist.server.mirror.logs import LogReader, LogRing, concerned_ranks, log_text


def test_records_become_log_records():
    recorder = Recorder(1)
    recorder.stream(0, "hello\n")
    recorder.display(0, "figure")
    recorder.rich(0, "error", ename="E", evalue="e", traceback=["line", "E: e"])
    recorder.clear(0)
    recorder.end()
    reader = LogReader(0, {"e-1": 3})
    records = [reader.convert(*record) for record in recorder.records]
    assert [record and record["kind"] for record in records] == [
        "begin", "stream", "output", "output", None, "end", None,
    ]  # fmt: skip
    assert all(record["execution_count"] == 3 for record in records[1:4])
    text = log_text(record for record in records if record)
    assert "# code\n" in text
    assert text.endswith("hello\nfigure\nline\nE: e\n# ---- ok ----\n")


def test_whose_log_a_record_is_in():
    recorder = Recorder(2)
    recorder.stream(1, "x")
    recorder.end()
    assert [tuple(concerned_ranks(header, 4)) for header, _ in recorder.records] == [(0, 1), (1,), (0,), (1,), ()]
    assert tuple(concerned_ranks({"kind": "note", "rank": None}, 3)) == (0, 1, 2)


def test_a_slow_follower_is_told_how_much_it_missed(monkeypatch):
    monkeypatch.setattr(logs, "MAX_RING_BYTES", 1000)
    ring = LogRing(0, {})
    recorder = Recorder(1)
    for number in range(20):
        recorder.stream(0, f"{number}\n")
    for record in recorder.records[1:]:
        ring.feed(*record)
    records, skipped = ring.after(1)
    assert len(records) + skipped == 20
    assert records[-1]["text"] == "19\n"
    assert ring.after(records[-1]["seq"]) == ([], 0)


def test_older_records_come_before_those_that_came_live():
    recorder = Recorder(1)
    for number in range(6):
        recorder.stream(0, f"{number}\n")
    ring = LogRing(0, {})
    for record in recorder.records[4:]:
        ring.feed(*record)
    ring.prepend(recorder.records[2:6], more=True)
    records, skipped = ring.after(0)
    assert [record["seq"] for record in records] == [3, 4, 5, 6, 7]
    assert skipped
    assert ring.after(2)[1] == 0
