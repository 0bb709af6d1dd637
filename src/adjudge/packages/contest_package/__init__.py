"""Contest packages of the ICPC Contest API, read and written: ``docs/reference/contest-package.md``."""
