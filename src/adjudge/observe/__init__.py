"""What operators see: logs and metrics.

What belongs here: declarations and set-up, each metric once. What does not: deciding when something happened. Every
room but ``domain`` may import from here; nothing here imports a room.
"""
