import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_dist.transport.frames import (
    LENGTHS,
    MAX_HEADER_BYTES,
    FrameDecoder,
    FrameError,
    FrameSplitter,
    encode_frame,
)

headers = st.dictionaries(st.text(max_size=8), st.one_of(st.none(), st.integers(), st.text(max_size=20)), max_size=4)


@given(st.lists(st.tuples(headers, st.binary(max_size=200)), max_size=6), st.integers(1, 50))
def test_frames_come_back_however_the_bytes_are_split(frames, size):
    data = b"".join(encode_frame(header, payload) for header, payload in frames)
    decoder = FrameDecoder()
    found = []
    for start in range(0, len(data), size):
        found.extend(decoder.feed(data[start : start + size]))
    assert found == frames


@given(
    st.lists(st.builds(encode_frame, headers, st.binary(max_size=50)), max_size=6),
    st.lists(st.integers(0, 99), max_size=9),
)
def test_short_frames_are_whole_and_long_ones_in_parts_however_the_bytes_are_split(frames, sizes):
    data, splitter, start, found = b"".join(frames), FrameSplitter(40), 0, []
    for size in [*sizes, len(data)]:
        found += splitter.feed(data[start : start + size])
        start += size
    assert b"".join(part for part, _ in found) == data
    assert [part for part, is_frame in found if is_frame] == [frame for frame in frames if len(frame) <= 40]


@given(st.binary(max_size=300))
def test_junk_gives_frames_or_a_frame_error(data):
    try:
        list(FrameDecoder().feed(data))
    except FrameError:
        pass


def test_a_length_over_the_limit_is_refused_before_it_is_read():
    with pytest.raises(FrameError, match="too large"):
        list(FrameDecoder().feed(LENGTHS.pack(MAX_HEADER_BYTES + 1, 0)))


def test_a_header_that_is_not_an_object_is_refused():
    with pytest.raises(FrameError, match="not an object"):
        list(FrameDecoder().feed(LENGTHS.pack(2, 0) + b"[]"))
