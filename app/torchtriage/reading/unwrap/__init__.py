"""Decodes files that must be read whole: documents, tables, exports, web pages, mails, and logs that were quoted, cut,
joined or reversed. Turns blocks of bytes into blocks of the log as it was written."""

from torchtriage.reading.unwrap.decoders import Unwrapped, unwrap

__all__ = ["Unwrapped", "unwrap"]
