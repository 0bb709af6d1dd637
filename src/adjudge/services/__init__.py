"""Operations that people and programs can ask for; the API, the pages, the commands and the executors call them.

What belongs here: object-level rules (whose object is it?), transactions, the audit log. What does not: HTTP (``api``,
``web``), SQL (``store``). An object that a viewer may not see is reported as not found, not as forbidden.
"""
