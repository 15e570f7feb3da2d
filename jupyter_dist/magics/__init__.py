"""`%load_ext jupyter_dist`: a kernel's cells on ranks, in the words of nbdistributed and of Ddip. docs/client.md."""
