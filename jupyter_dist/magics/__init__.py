"""`%load_ext jupyter_dist`: cells on ranks, with magics of nbdistributed and Ddip (docs/reference/magics.md)."""
