"""Starting rank processes on this machine: forked from a zygote, or as fresh Python processes."""
