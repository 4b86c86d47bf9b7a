"""What NVIDIA's PyTorch images hold, by release: the tag of an image in, versions of torch, CUDA and NCCL out.

Facts of NVIDIA's release notes and compatibility tables; a release of which they were not at hand is not guessed.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.facts.patterns import Shown, Sign

# nvcr.io/nvidia/pytorch:24.05-py3 · enroot's nvcr.io#nvidia/pytorch:24.05-py3; other frameworks' images print the same banner
IMAGE = Sign(r"\bnvcr\.io[/#]nvidia/pytorch:(\d\d\.\d\d)\b")
_NAMES = ("torch", "cuda", "nccl")
_HELD: dict[str, tuple[str | None, str | None, str | None]] = {
    "19.03": (None, "10.1", "2.4.3"),
    "20.01": (None, "10.2", "2.5.6"),
    "20.02": ("1.4.0a0+a5b4d78", "10.2", None),
    "20.10": (None, "11.1", "2.7.8"),
    "22.03": (None, "11.6", "2.12.9"),
    "22.05": (None, "11.7", "2.12.10"),
    "24.03": ("2.3.0a0+40ec155e58", "12.4", None),
    "24.05": ("2.4.0a0+07cecf4168", "12.4", "2.21.5"),
    "24.06": ("2.4.0a0+f70bd71a48", None, None),
    "24.07": ("2.4.0a0+3bcc3cddb5", "12.5", None),
    "24.08": ("2.5.0a0+872d972e41", None, None),
    "24.10": ("2.5.0a0+e000cf0ad9", "12.6", None),
    "24.11": ("2.6.0a0+df5bbc09d1", "12.6", None),
    "25.01": ("2.6.0a0+ecf3bae40a", "12.8", None),
    "25.04": ("2.7.0a0+79aa17489c", "12.9", None),
    "25.05": ("2.8.0a0+5228986c39", "12.9", None),
    "25.06": ("2.8.0a0+5228986c39", "12.9", None),
    "25.10": ("2.9.0a0+145a3a7bda", "13.0", None),
    "25.12": ("2.10.0a0+b4e4ee81d3", "13.1", None),
}


def held(text: str, shown: Shown) -> Iterator[tuple[str, str]]:
    """-> (package, version) for what is known to be in the image that a line names."""
    found = IMAGE.regex.search(text) if IMAGE in shown else None
    release = found[1] if found else ""
    for name, version in zip(_NAMES, _HELD.get(release, (None, None, None)), strict=True):
        if version is not None:
            yield name, version
