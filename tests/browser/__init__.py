"""Pages in a real browser, on real servers."""
