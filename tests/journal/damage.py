"""What others may do to a journal."""

import struct

from jupyter_dist.journal.reader import segments
from jupyter_dist.journal.records.record import record_prefix
from jupyter_dist.transport.frames import MAX_PAYLOAD_BYTES, encode_frame


def append_to_last_segment(directory, data):
    with segments(directory)[-1][1].open("ab") as file:
        file.write(data)


def forged(payload=b"", **header):
    frame = encode_frame({"at": 1.0, **header}, payload)
    return record_prefix(frame) + frame


FORGERIES = [
    b"x" * (3 << 20),
    b"\xf0JDR" * (1 << 19),
    b"\xf0JDR" + b"\0\0\0\0" + struct.pack("!II", 10, MAX_PAYLOAD_BYTES),
    b"\xf0JDR" + b"\0\0\0\0" + b"\xff" * 8 + b"y" * (2 << 20),
    forged(kind="note"),
    forged(seq=10**15, kind="note"),
    forged(seq=10**15, kind="stream", rank=0, name="stdout", execution_id="e"),
    forged(seq=True, kind="note"),
    forged(seq="4", kind=["x"]),
    forged(seq=4, kind="begin", execution_id="e", ranks="0-6000000"),
    forged(seq=4, kind="begin", execution_id="e", ranks="0-4095," * 500),
]


def spoil(state, path, other):
    whole = path.read_bytes()
    path.unlink()
    if state == "a folder":
        path.mkdir()
    elif state == "torn":
        path.write_bytes(whole[:-20])
    elif state == "of another segment":
        path.write_bytes(other)
    elif state == "with a gap":
        path.write_bytes(b"".join(line for place, line in enumerate(whole.splitlines(True)) if place != 1))
