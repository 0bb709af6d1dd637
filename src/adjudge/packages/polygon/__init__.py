"""Codeforces Polygon packages: ``problem.xml``. There is no public specification; the code follows real packages."""
