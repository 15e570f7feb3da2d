"""Watching the ranks: whether they answer, and how much memory they hold."""
