"""Python's own zstd module, or its backport for older versions."""

import sys

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CompressionParameter, DecompressionParameter = zstd.CompressionParameter, zstd.DecompressionParameter
ZstdError, ZstdFile = zstd.ZstdError, zstd.ZstdFile
compress, decompress = zstd.compress, zstd.decompress
