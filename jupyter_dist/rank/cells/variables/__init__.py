"""What a rank has under the names of its users, and how that differs from other ranks; no code of users runs."""
