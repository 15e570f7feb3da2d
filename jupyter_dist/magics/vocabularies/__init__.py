"""The magics themselves, in the words of nbdistributed and of Ddip."""
