"""Contests: clock, scoring formats, ranking, awards, resolver and rating. Uses only ``domain`` and ``store``."""
