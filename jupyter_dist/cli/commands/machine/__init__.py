"""Commands about this machine, its launchers, and other programs that use groups."""
