"""Extracts the versions that a log prints, and the range of torch versions that is consistent with its message
forms."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from torchtriage.domain.vocabulary import Vocabulary
from torchtriage.facts.scan_regex import MatchedRegexes, ScanRegex, regexes_by_name
from torchtriage.lazy_regex import lazy_regex

Bounds = tuple[tuple[int, int] | None, tuple[int, int] | None]  # (at least, below), each as (major, minor)

SPELLINGS = "package-spellings"
_OWN_FORMS = "package-version-lines"
_IMAGES = "nvidia-pytorch-images"
_VERSION = r"(\d{1,4}\.\d{1,4}(?:\.\d{1,4}){0,3}(?:(?:a|b|rc|\.post|\.dev)\d+)?(?:\+[\w.]+)?)"
# Texts with a package's name and version: torch==2.3.0+cu121 · torch 2.3.0 · PyTorch version: 2.3.0 ·
# "transformers_version": "4.41.0" · torch-2.3.0.dist-info
_BEFORE = r"(?i)(?:^|[\s\[('\"`/,;:*-])"
_BEHIND = (
    r"(==|-|\s+|[`'\"]?(?:,? version|_version|\.__version__| info)?[`'\"]?(?: \(GPU\?\))?\s{0,3}[:=.]*\s?['\"]?v?)"
    + _VERSION
)
_WITHOUT_WHEELS = ("torch", "cuda", "nccl", "driver", "cudnn", "python")  # these are printed in other forms, see below
_WHEEL = lazy_regex(r"(?:\.dist-info|\.egg|-cp\d|-py\d)")  # the text after torch-2.3.0
_NAMED_PYTHON = r"(?i)\bpython(?:[ _]version)?['\"]?\s?[:=]?\s?"
_PYTHON = _NAMED_PYTHON + r"(?:(3\.\d{1,2}\.\d+)\b|(3\.\d{1,2})(?:[^\w/\\]|$))"
PATH = ScanRegex(_NAMED_PYTHON + r"(3\.\d{1,2})[/\\]")  # in most frames; not needed once the version is known
# nvcr.io/nvidia/pytorch:24.05-py3 · enroot's nvcr.io#nvidia/pytorch:24.05-py3; images of other frameworks print the
# same banner
_IMAGE = ScanRegex(r"\bnvcr\.io[/#]nvidia/pytorch:(\d\d\.\d\d)\b")
_PYTHON_OR_PATH = lazy_regex(f"{_PYTHON}|{PATH.pattern.removeprefix('(?i)')}")
_OTHERS = {  # versions that are printed in other forms
    "cuda": ScanRegex(
        r"(?i)\b(?:cuda(?: runtime| toolkit)?(?: version)?['\"]?\s?|CUDA used to build PyTorch|torch cuda version|nvcc version)[.:= ]*[:=. ]\s?(\d+\.\d+)"
        r"|pytorch/pytorch:\d+\.\d+\.\d+-cuda(\d+\.\d+)|Cuda compilation tools, release (\d+\.\d+)|NCCL version \d+\.\d+\.\d+\+cuda(\d+\.\d+)"
        r"|(?i:torch)\S{0,3}\s{0,40}\d+\.\d+\.\d+\+cu(\d{2,3})\b"
    ),
    "nccl": ScanRegex(r"(?i)\bNCCL(?: version)?\s?[:=]?\s?(\d+\.\d+\.\d+)|nccl\.version\(\)\D{0,4}\((\d+, \d+, \d+)\)"),
    "python": ScanRegex(_PYTHON),
    "driver": ScanRegex(r"(?i)driver version: ?(\d+\.\d+(?:\.\d+)?)|Kernel Module\s+(\d+\.\d+(?:\.\d+)?)"),
    "cudnn": ScanRegex(r"(?i)\bcudnn(?: version)?['\"]?\s?[:=]\s?(\d[\d.]*\d)|libcudnn\.so\.(\d+\.\d+\.\d+)"),
}
# A version that is required or being removed is not the one in use.
_ASKED = lazy_regex(
    r"(?i)(?:requires?|needs?|since|least|minimum|before|after|until|than|upgrade to|from|uninstalling|installation:|collecting|expected"
    r"|compiled (?:with|for)|compatible with)[\s'\"]*$"
)
_OR_LATER = lazy_regex(
    r"(?i)['\"]?\s?(?:\(?(?:or|and) (?:later|above|newer|higher|greater|below|earlier)|\+? (?:is|are) required| is available)"
)

# Forms that only some torch versions print, so they show the version without its number: (form, at least, below).
_FORMS: tuple[tuple[ScanRegex, Bounds], ...] = (
    # W0501 09:00:00.100000 140737350346560 torch/distributed/run.py:779] has a thread id; later versions print the
    # process id
    (ScanRegex(r"^[WEIF]\d{4} [\d:.]+ \d{12,} (?:\S+/)?torch/"), ((2, 3), (2, 5))),
    (ScanRegex(r"^[WEIF]\d{4} [\d:.]+ \d{1,8} (?:\S+/)?torch/"), ((2, 4), None)),
    (ScanRegex(r"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+\] torch\.distributed\.[\w.]+: \["), ((2, 1), (2, 3))),
    (ScanRegex(r"^(?:WARNING|ERROR|INFO):torch\.distributed\.(?:run|elastic)"), ((1, 9), (2, 1))),
    (ScanRegex(r"\[rank\d+\]: ?(?:Traceback \(|\S+Error: )"), ((2, 2), None)),
    (ScanRegex(r"\[rank\d+\]:\[[WEIF] \w+\.(?:cpp|h|cu):\d+\]"), ((2, 2), (2, 4))),
    (ScanRegex(r"\[[WEIF]\d{3,4} [\d:.]+ \w+\.(?:cpp|h|cu):\d+\]"), ((2, 4), None)),
    (ScanRegex(r"^\[[WEIF] \w+\.(?:cpp|h|cu):\d+\]"), (None, (2, 4))),
    (ScanRegex(r"\btorch\.OutOfMemoryError: CUDA"), ((2, 5), None)),
    (ScanRegex(r"\btorch\.cuda\.OutOfMemoryError: CUDA"), ((1, 13), (2, 5))),
    (ScanRegex(r"\bRuntimeError: CUDA out of memory\. Tried"), (None, (1, 13))),
    (ScanRegex(r"torch\.distributed\.DistBackendError: "), ((2, 0), None)),
    (ScanRegex(r"\bTORCH_USE_CUDA_DSA\b"), ((2, 0), None)),
    (ScanRegex(r"/torch/(?:_dynamo|_inductor)/"), ((2, 0), None)),
    (ScanRegex(r"/torch/nn/modules/module\.py\", line \d+, in _wrapped_call_impl"), ((2, 1), None)),
    (ScanRegex(r"/torch/autograd/graph\.py\", line \d+, in _engine_run_backward"), ((2, 3), None)),
    (ScanRegex(r"/torch/distributed/c10d_logger\.py"), ((2, 0), None)),
    (ScanRegex(r"/torch/(?:_tensor\.py|distributed/run\.py|distributed/elastic/)"), ((1, 9), None)),
    (ScanRegex(r"/torch/tensor\.py\", line"), (None, (1, 9))),
    (ScanRegex(r"Root Cause \(first observed failure\):"), ((1, 9), None)),
    (ScanRegex(r"\bOutput \d+ of \w+Backward0 is a view"), ((1, 10), None)),
    (ScanRegex(r"In PyTorch 2\.6, we changed the default value"), ((2, 6), None)),
)
# Python version → the first minor version of torch with wheels for it, and the first without.
_PYTHONS: dict[str, Bounds] = {
    "3.6": (None, (1, 11)), "3.7": (None, (2, 0)), "3.8": (None, (2, 5)), "3.11": ((1, 13), None),
    "3.12": ((2, 2), None), "3.13": ((2, 5), None), "3.14": ((2, 9), None),
}  # fmt: skip


class VersionRegexes:
    """The regexes of lines that show a version. `printed_regexes` are those of lines that print one. `all` also has those
    of torch's own message forms."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        spelled = vocabulary.patterns(SPELLINGS)
        self._spelled = tuple((item.name or "", lazy_regex(item.exact)) for item in spelled)
        self._named = ScanRegex(f"{_BEFORE}({'|'.join(item.regex for item in spelled)}){_BEHIND}")
        self._own = _OTHERS | regexes_by_name(vocabulary.patterns(_OWN_FORMS))
        self._images = vocabulary.groups(_IMAGES)
        self._package = lru_cache(maxsize=256)(self._package_of_spelling)
        self.printed_regexes = frozenset((self._named, _IMAGE, PATH, *self._own.values()))
        self.all = (self._named, _IMAGE, PATH, *self._own.values(), *(form for form, _ in _FORMS))

    def printed(self, text: str, matched: MatchedRegexes) -> tuple[tuple[str, str], ...]:
        """Returns (package, version) for each version that a line prints. `matched` are the regexes that match it."""
        if self.printed_regexes.isdisjoint(matched):
            return ()
        return (
            *(self._by_name(text) if self._named in matched else ()),
            *self._in_own_form(text, matched),
            *self._image_packages(text, matched),
        )

    def _by_name(self, text: str) -> Iterator[tuple[str, str]]:
        for found in self._named.compiled.finditer(text):
            between, version = found[2], found[3]
            if version.count(".") < 2 and "version" not in between.lower():
                continue
            if between == "-" and not (_WHEEL.match(text, found.end()) or "Successfully installed" in text):
                continue
            before = text[max(found.start(1) - 30, 0) : found.start(1)]
            if _ASKED.search(before) or _OR_LATER.match(text, found.end()):
                continue
            name = self._package(found[1])
            if name == "cuda":
                version = ".".join(version.split(".")[:2])
            yield name, version.rstrip(".")

    def _package_of_spelling(self, spelling: str) -> str:
        return next(name for name, regex in self._spelled if regex.fullmatch(spelling))

    def _image_packages(self, text: str, matched: MatchedRegexes) -> Iterator[tuple[str, str]]:
        """Yields the known packages of the container image that a line names."""
        found = _IMAGE.compiled.search(text) if _IMAGE in matched else None
        for held in self._images.get(found[1], ()) if found else ():
            name, _, version = held.partition(" ")
            yield name, version

    def _in_own_form(self, text: str, matched: MatchedRegexes) -> Iterator[tuple[str, str]]:
        for name, regex in self._own.items():
            if name == "python" and (regex in matched or PATH in matched):
                found = _PYTHON_OR_PATH.search(text)
            else:
                found = regex.compiled.search(text) if regex in matched else None
            # nvidia-smi prints the newest CUDA version that the driver supports, which is not the one in use.
            if found is None or (name == "cuda" and "Driver Version" in text):
                continue
            version = next(part for part in found.groups() if part)
            if name == "nccl":
                version = _nccl_version(version.replace(", ", "."))
            elif name == "cuda" and "." not in version:
                version = f"{version[:-1]}.{version[-1]}"
            yield name, version


def packages(vocabulary: Vocabulary) -> tuple[str, ...]:
    """Returns the packages whose versions can be found."""
    listed = (item.name or "" for item in vocabulary.patterns(SPELLINGS)) if SPELLINGS in vocabulary.lists else ()
    return tuple(dict.fromkeys((*_WITHOUT_WHEELS, *listed)))


def _nccl_version(version: str) -> str:
    """Returns the NCCL version 2.10.3 for 21.0.3. torch before 1.13 split the number 21003 of newer NCCL versions in
    the old way."""
    major, minor, patch = (int(part) for part in version.split("."))
    if major < 20:
        return version
    code = major * 1000 + minor * 100 + patch
    return f"{code // 10000}.{code // 100 % 100}.{code % 100}"


def bounds(matched: MatchedRegexes) -> Bounds:
    """Returns the torch versions that are consistent with a line's form. `matched` are the regexes that match it."""
    return intersection([limits for form, limits in _FORMS if form in matched])


def bounds_by_python(version: str | None) -> Bounds:
    """Returns the torch versions that support a Python version, given as `3.12` or `3.12.3`."""
    return _PYTHONS.get(".".join(version.split(".")[:2]), (None, None)) if version else (None, None)


def intersection(limits: list[Bounds]) -> Bounds:
    """Returns the torch versions that are within all `limits`."""
    lows = [low for low, _ in limits if low]
    highs = [high for _, high in limits if high]
    return max(lows, default=None), min(highs, default=None)


def range_text(limits: Bounds) -> str | None:
    """Returns the bounds as `>=2.3,<2.5`. None if there are none, or if the forms contradict each other."""
    low, high = limits
    if low and high and low >= high:
        return None
    parts = [f"{operator}{limit[0]}.{limit[1]}" for operator, limit in ((">=", low), ("<", high)) if limit]
    return ",".join(parts) or None
