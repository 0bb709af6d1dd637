"""One module per group of routes; each gives a router built from what it needs."""
