"""How a rank process comes to be: forked from a zygote that has torch imported, or as a fresh process."""
