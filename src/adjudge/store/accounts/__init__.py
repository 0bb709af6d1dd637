"""Users, sessions, API tokens and invitations."""
