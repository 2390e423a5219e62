"""`python -m tidepool_torch` is the console script tidepool-torch."""

from .cli import main

main()
