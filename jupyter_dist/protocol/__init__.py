"""The data that crosses process boundaries: standard library only, no I/O."""
