"""Values and rules of the domain: pure code, standard library only; no clock, file, socket or database."""
