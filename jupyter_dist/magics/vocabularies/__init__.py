"""The magics of nbdistributed and of Ddip."""
