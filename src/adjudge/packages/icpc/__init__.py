"""The ICPC/Kattis problem package format: legacy, legacy-icpc, 2023-07 and 2025-09, with DOMjudge's additions."""
