"""What routes and pages do: plain functions of the parts, a viewer and values.

What belongs here: object-level rules (whose object is it?), transactions, the audit log. What does not: HTTP
(``routes`` and ``web``), SQL (``store``). An object that a viewer may not know of is not found, rather than forbidden.
"""
