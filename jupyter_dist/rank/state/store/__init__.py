"""Files of ranks: chunks named by their contents, and a manifest for each rank."""
