"""What all launchers have in common: options, and what an administrator sets about them."""
