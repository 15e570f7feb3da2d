"""The outputs of ranks on the way to the fold: decoded, in lines, within limits."""
