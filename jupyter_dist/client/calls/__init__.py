"""Objects and functions to ranks and back."""
