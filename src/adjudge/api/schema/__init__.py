"""Models of requests and responses, one module per group of routes."""
