"""Real processes on real servers, and what is done to them."""
