"""Serves groups to language-model agents, by the Model Context Protocol."""
