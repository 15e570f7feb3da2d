"""`%load_ext jupyter_dist`: runs a kernel's cells on ranks, with magics of nbdistributed and Ddip. docs/reference/magics.md."""
