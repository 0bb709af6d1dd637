"""Import and export of contest packages. ``packages/contest_package`` reads and writes the files."""
