"""Watches the ranks: whether they respond, and how much memory they hold."""
