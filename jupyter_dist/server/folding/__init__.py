"""From journal records to what is shown: what many ranks say alike stands once, for whoever asks (pure, no I/O)."""
