"""Pages for people: rendered on the server, alive where the browser helps, whole where it does not.

What belongs here: templates, words, drawings, the routes of pages. What does not: rules and reads (the actions of
``api`` and the rooms below give those), JSON (``api``). No request leaves the machine: whatever a page loads is served
from ``static/``.
"""
