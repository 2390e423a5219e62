"""The version of the package, as its wheel has it."""

__version__ = "0.1.0"
