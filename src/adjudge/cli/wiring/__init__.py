"""Composition of the roles: which objects an API server, a scheduler or a worker is made of."""
