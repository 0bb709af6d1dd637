"""Page routes, one module per group of pages."""
