"""Problem packages: every format is read into ``domain.problem.Problem``, which can be written as an ICPC package.

Opens archives safely, reads and writes formats, reports all problems of a package at once, and runs jury programs
through the judge (``jury_runner``, ``verifier``).

Everything in a package is untrusted. ``archive`` turns a folder or a ZIP into ``files.PackageFiles``, a flat map of
safe names; ``load`` detects the format; one reader per format returns the problem and adds ``findings``.
"""
