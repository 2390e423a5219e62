"""Callbacks for the trainers of other packages, which call a Budget instead of a user's `with`."""
