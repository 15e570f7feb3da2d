"""What crosses a process boundary: pure data, standard library only, no I/O."""
