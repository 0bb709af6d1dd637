"""Evaluates many programs on their tests: records in, results out, without a database.

``records`` is the data, ``shapes`` reads the record shapes of public code benchmarks, ``runner`` runs one record, and
``stream`` runs many with bounded memory.
"""
