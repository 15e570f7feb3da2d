"""Launchers: engines that queue, place, start and end one node agent on each node of a group."""
