"""Problem packages, in and out: every format becomes ``domain.problem.Problem``, and that becomes an ICPC package.

What belongs here: opening archives safely, reading and writing formats, saying what is wrong with a package, all of it
at once; having the judge run what a package ships (``jury``, ``verification``). What does not: running anything but
through the judge, in its sandbox, and deciding verdicts.

Everything in a package is untrusted. ``archive`` turns a folder or a ZIP into ``files.PackageFiles``, a flat map of
safe names; ``detect`` names the format; a reader per format returns the problem and adds ``findings``.
"""
