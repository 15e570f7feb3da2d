"""The way of nodes to the head through a program that the head starts on each: for networks without a way back."""
