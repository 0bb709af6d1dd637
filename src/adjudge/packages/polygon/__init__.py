"""Codeforces Polygon packages: ``problem.xml``. There is no public specification; real packages decide."""
