"""The Pythons that groups can run in, what is asked of each, and what ranks need."""
