"""Empty, so that what the module was built for can be read before it is loaded."""
