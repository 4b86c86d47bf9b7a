"""Files that are decoded whole before their first line is known: documents, tables, exports, pages, mails, and logs that
were quoted, cut, joined or turned upside down. Blocks of bytes in, blocks of bytes as the log was written out."""

from torchtriage.reading.unwrap.decoders import Unwrapped, unwrap

__all__ = ["Unwrapped", "unwrap"]
