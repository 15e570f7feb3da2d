"""The copy of the package that groups and nodes run, so that an upgrade of the package changes nothing in them."""
