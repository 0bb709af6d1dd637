"""The HTTP API: ``/api/v1/…``, JSON, errors with stable codes.

Contains routes, wire models, the table of errors and middleware. Business rules are in ``domain`` and ``services``, SQL
is in ``store``, pages are in ``web``. Everything a route needs is passed to :func:`adjudge.api.app.create_app`.
"""
