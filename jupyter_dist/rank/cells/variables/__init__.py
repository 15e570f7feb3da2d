"""The variables of a rank, and how they differ from other ranks; no code of users runs."""
