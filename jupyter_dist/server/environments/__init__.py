"""The Pythons that groups can run in, the probe of each, and the requirements of ranks."""
