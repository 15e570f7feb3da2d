"""Modules: the variables of the user's own, objects and attributes of libraries, and sources."""
