"""What every declared version must do."""
