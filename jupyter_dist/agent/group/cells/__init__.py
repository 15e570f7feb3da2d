"""The cells of a group: their states, the order in which they run, and how they are sent to ranks."""
