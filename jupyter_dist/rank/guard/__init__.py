"""What keeps a rank itself whole, whatever a cell replaces, clears or closes."""
