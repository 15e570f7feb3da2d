"""Names the errors of NVIDIA's devices (Xid) in the notes of a group, while they count."""

WORDS = ("xid", "xids")  # by which code names it
