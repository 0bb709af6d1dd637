"""Content-addressed files: test data, statements, sources, logs.

What belongs here: storing, reading and removing bytes by their digest. What does not: what a file
means, and who uses it.
"""

from adjudge.blobs.driver import BlobCorrupt, BlobInfo, BlobSource, BlobStore, Digest, parse_digest

__all__ = ["BlobCorrupt", "BlobInfo", "BlobSource", "BlobStore", "Digest", "parse_digest"]
