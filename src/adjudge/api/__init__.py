"""HTTP for programs: ``/api/v1/…``, JSON, problems with stable codes.

What belongs here: routes, wire models, the table of errors, headers. What does not: rules (``domain``), SQL
(``store``), pages (``web``). Everything a route needs is passed to :func:`adjudge.api.app.create_app`.
"""
