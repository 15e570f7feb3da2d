"""Calls of clients on a rank: variables, functions, scripts, and files from other machines."""
