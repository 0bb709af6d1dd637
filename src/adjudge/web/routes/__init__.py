"""One module per group of pages; each gives a router built from what it needs."""
