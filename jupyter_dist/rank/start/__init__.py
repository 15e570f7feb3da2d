"""Starting a rank process: forked from a zygote that has imported torch, or as a fresh process."""
