"""The values of a rank: their contents, described and compared with other ranks; no code of users runs."""
