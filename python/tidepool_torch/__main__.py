"""`python -m tidepool_torch` is the console script tidepool-torch."""

from .user.cli import main

main()
