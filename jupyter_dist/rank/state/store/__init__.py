"""Files of a save: chunks named by their contents, and a manifest for each rank."""
