"""The blob store: files addressed by their digest (test data, statements, sources, logs)."""

from adjudge.blobs.driver import BlobCorrupt, BlobInfo, BlobSource, BlobStore, Digest, parse_digest

__all__ = ["BlobCorrupt", "BlobInfo", "BlobSource", "BlobStore", "Digest", "parse_digest"]
