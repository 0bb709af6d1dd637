"""Fuzzers for parsers of untrusted data: the launcher's requests, its reports, and problem packages."""
