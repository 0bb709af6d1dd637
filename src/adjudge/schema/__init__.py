"""Response models of the HTTP API: the server encodes them, the client decodes them (ADR 0084).

Standard library and ``domain`` only, so that a program that uses the client loads neither the server nor pydantic.
"""
