"""Models of what goes over the wire: the one place where a value gets a second shape; a module per group of routes."""
