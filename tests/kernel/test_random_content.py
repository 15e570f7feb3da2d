"""Random requests, and random output of cells: each request gets an answer, and the next cell runs."""

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jupyter_client.jsonutil import json_default
from jupyter_client.session import Session
from waits import PATIENCE

few = settings(
    settings.get_profile("channels"),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
texts = st.text(st.characters(), max_size=20)  # with surrogates, which UTF-8 cannot hold
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
CELLS = (
    "raise ValueError({0!r})",
    "raise type({0!r}.replace(chr(0), ''), (Exception,), {{}})({0!r})",
    "print({0!r}); import sys; print({0!r}, file=sys.stderr)",
    "display({{'text/plain': {0!r}, 'application/json': {{{0!r}: [{0!r}, float('nan'), float('inf')]}}}}, raw=True)",
    "{0!r}",
    "class Odd:\n    def __repr__(self): return {0!r}\nOdd()",
)


@few
@given(texts | st.sampled_from(["\ud800", "a\udcffb"]), st.sampled_from(CELLS))
def test_whatever_a_cell_prints_shows_or_raises_the_next_one_runs(kernel, text, cell):
    kernel.run(cell.format(text))
    found = kernel.run("'answered'")
    assert (found.status, found.results[0]["text/plain"]) == ("ok", "'answered'")


NAMES = ("code", "cursor_pos", "detail_level", "comm_id", "target_name", "data", "value", "hist_access_type", "pattern")
contents = st.dictionaries(st.sampled_from((*NAMES, "user_expressions", "n", "start", "stop")), values, max_size=6)
# A cell that restarts or interrupts is no junk.
kinds = st.sampled_from(
    [f"{name}_request" for name in ("execute", "complete", "inspect", "history", "is_complete", "comm_info", "usage")]
    + ["comm_open", "comm_msg", "comm_close", "input_reply"]
)


@few
@given(st.lists(st.tuples(st.sampled_from(["shell", "control", "stdin"]), kinds, contents, values), max_size=4))
def test_whatever_is_requested_is_answered_and_the_next_cell_runs(kernel, requests):
    client = kernel.client
    session = Session(key=client.session.key, pack=lambda part: json.dumps(part, default=json_default).encode())
    unanswered = set()
    for channel, kind, content, metadata in requests:
        code = content.get("code")
        harmless = {**content, "code": repr(code)} if isinstance(code, str) else content  # no random commands
        message = session.msg(kind, harmless, metadata=metadata if isinstance(metadata, dict) else None)
        getattr(client, f"{channel}_channel").socket.send_multipart(session.serialize(message))
        if channel != "stdin":
            unanswered.add(message["header"]["msg_id"])
    while unanswered:
        message = client.get_iopub_msg(timeout=PATIENCE)
        if message["content"].get("execution_state") == "idle":
            unanswered.discard(message["parent_header"]["msg_id"])
    found = kernel.run("'answered'")
    assert (found.status, found.results[0]["text/plain"]) == ("ok", "'answered'")
