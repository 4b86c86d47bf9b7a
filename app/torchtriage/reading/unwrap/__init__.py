"""Files that must be read whole before their first line is known: documents, tables, exports, pages, mails, and logs that
were quoted, cut, joined or turned upside down. Blocks of bytes in, blocks of bytes out, as the log was written."""

from torchtriage.reading.unwrap.decoders import Arranged, arranged

__all__ = ["Arranged", "arranged"]
