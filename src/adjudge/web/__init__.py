"""Web pages: server-side rendered, with scripts as an enhancement.

Contains templates, translations, plots and page routes. Pages call services; they contain no business rules. All
resources are served from ``static/``; a page loads nothing from other hosts.
"""
