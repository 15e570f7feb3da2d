"""Waits of torch.distributed that an interrupt ends: for collectives, for keys of stores, for the server of a store."""
