"""Runs cells of a client on the ranks of its group, and turns results into messages."""
