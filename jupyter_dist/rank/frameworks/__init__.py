"""Fixes of modules, made when a rank imports them: of torch and comms here, and of parts and other packages."""
