"""Modules in a save: the variables of the user's own, objects and attributes of libraries, and sources."""
