"""From the cells that ran on ranks to a script for torchrun (pure)."""
