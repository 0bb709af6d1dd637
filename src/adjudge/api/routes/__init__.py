"""One module per group of routes; each returns a router built from the services that it needs."""
