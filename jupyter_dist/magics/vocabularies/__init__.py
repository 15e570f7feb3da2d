"""Magics of nbdistributed beside `%dist_...`."""
