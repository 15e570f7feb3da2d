"""Ends a collective that hangs, by breaking the connections that it waits on."""
