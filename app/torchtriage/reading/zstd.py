"""Python's own zstd module, where it is not there yet its backport."""

import sys

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CompressionParameter, DecompressionParameter = zstd.CompressionParameter, zstd.DecompressionParameter
ZstdError, ZstdFile = zstd.ZstdError, zstd.ZstdFile
compress, decompress = zstd.compress, zstd.decompress
