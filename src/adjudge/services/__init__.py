"""Operations that the API, the pages, the commands and the executors share.

Contains object-level rules (who may see and change an object), transactions and the audit log. HTTP is in ``api`` and
``web``, SQL is in ``store``. An object that a viewer may not see is reported as not found, not as forbidden.
"""
