"""Who may do what: one table per area, ``ROUTES``: (method, path) → roles, or ``"open"`` for everybody.

``"nobody"`` among the roles is a visitor without credentials. Written by hand, so that a permission point that moves
from one role to another shows up here as a difference that somebody must mean.
"""

ADMIN = {"admin"}
STAFF = {"admin", "judge"}
USERS = {"admin", "setter", "judge", "contestant", "service"}
ALL = USERS | {"nobody"}
