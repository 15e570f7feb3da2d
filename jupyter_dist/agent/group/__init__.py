"""The living group: its state, its queue of cells, and the re-creation of its process group."""
