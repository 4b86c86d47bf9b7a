"""Finds the ranks of lines that show only node and local rank."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, field

from torchtriage.domain.line import Line
from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.prefixes.paths import writer_of

_PER_NODE = lazy_regex(
    r"(?:nproc[_-]per[_-]node|local_world_size|num_local_procs|ntasks[_-]per[_-]node)['\"]?\s?[=: ]\s?(\d{1,3})\b", re.I
)
# A line from which the numbering is learned contains one of these.
WORDS = ("_ranks=[", "group_rank=", "per_node", "ocal_world", "local_procs", ") world_rank=", "[rank=")
# Messages of a launcher that starts workers. If such a launcher is a task of an outer launcher, the outer numbers are
# nodes.
AGENT = (
    "distributed/run.py:", "distributed.run:", "failed (exitcode", "first observed failure", "elastic.agent",
    "elastic/agent/", "[launch.py:",
)  # fmt: skip
_GROUP = lazy_regex(r"\b(group_rank|local_ranks|global_ranks)=(?:\[(\d+)[\d, ]*\]|(\d+))")
_FIRST_POD = lazy_regex(r"-(?:master|launcher|chief)-\d{1,5}(?:-[a-z0-9]{5})?$")
# train-worker-3, js-workers-0-3-x7k2p, job-3-x7k2p
_POD = lazy_regex(r"-(\d{1,5})(?:-[a-z0-9]{5})?$")
# Ray: - (node_id=…, ip=10.0.0.3, pid=3124) world_rank=5, … · ray::Policy.init() (pid=18211, …, repr=Policy[rank=13])
_PROCESS = lazy_regex(r"\bpid=(\d+)\) world_rank=(\d{1,6})|\(pid=(\d+),[^()\n]{0,200}\brepr=\w+\[rank=(\d{1,6})\]")
_PID = lazy_regex(r" (\d+)/")  # of the process, in a stream's name


@dataclass(slots=True)
class Ranks:
    """Call `settled` with every kept line of a run, in order. Learns how many workers a node has, and the node of each
    host."""

    per_node: int | None = None
    _agents: bool = False  # whether the tasks are launchers
    _master: bool = False  # whether a pod called master is first, and the first worker second
    _nodes: dict[str, int] = field(default_factory=dict)
    _writers: dict[str, str] = field(default_factory=dict)  # file → writer
    _rank_of: dict[str, int] = field(default_factory=dict)  # writer → rank
    _processes: dict[str, int | None] = field(default_factory=dict)  # process id → rank, or None if two ranks share it

    def settled(self, lines: Sequence[Line], said: Set[str]) -> Sequence[Line]:
        """Returns the lines, with ranks as far as they are known by now. `said` are the words that the lines
        contain."""
        if not self._agents and not said.isdisjoint(AGENT):
            self._agents = any(line.node is not None and _is_of_agent(line.text) for line in lines)
        if self._nodes or self._processes or not said.isdisjoint(WORDS):
            return [self._settled(line) for line in lines]
        return [
            line
            if line.local_rank is None and line.pod is None and (line.node is None or not self._of_node(line))
            else self._settled(line)
            for line in lines
        ]

    def _of_node(self, line: Line) -> bool:
        """Returns whether the number in a line's label is a node and not a rank."""
        return line.rank is None or (self._agents and line.rank == line.node)

    def _settled(self, line: Line) -> Line:
        self._learn(line)
        if line.rank is None and self._processes and (process := _PID.search(line.stream)):
            line = line._replace(rank=self._processes.get(process[1]))
        if line.rank is not None and line.local_rank is None and line.node is not None and self._of_node(line):
            line = line._replace(rank=None)
        if line.file is not None and line.local_rank is not None:
            line = self._of_writer(line, line.file)
        if line.rank is not None and (line.local_rank is None or self.per_node):
            return line
        node = self._node(line)
        if node is None:
            return line
        if line.rank is not None and line.local_rank is not None:
            if node and (line.rank - line.local_rank) % node == 0:
                self.per_node = (line.rank - line.local_rank) // node
            return line
        local = 0 if self.per_node == 1 else line.local_rank
        if local is None or self.per_node is None:
            return line
        return line._replace(rank=node * self.per_node + local, local_rank=local)

    def _of_writer(self, line: Line, file: str) -> Line:
        """Returns the line with the rank that its process shows elsewhere: error.json gets it from stderr.log next to
        it."""
        writer = self._writers.get(file)
        if writer is None:
            writer = self._writers[file] = writer_of(file)
        if line.rank is not None:
            self._rank_of.setdefault(writer, line.rank)
            return line
        rank = self._rank_of.get(writer)
        return line if rank is None else line._replace(rank=rank)

    def _learn(self, line: Line) -> None:
        text = line.text
        if "world_rank=" in text or "[rank=" in text:
            for pid, rank, other_pid, other_rank in _PROCESS.findall(text):
                known = self._processes.setdefault(pid or other_pid, int(rank or other_rank))
                if known != int(rank or other_rank):
                    self._processes[pid or other_pid] = None
        if "_ranks=[" in text or "group_rank=" in text:
            for name, first, number in _GROUP.findall(text):
                if name == "group_rank":
                    self._nodes[line.host or line.stream] = int(number)
                elif name == "global_ranks" and (node := self._nodes.get(line.host or line.stream)):
                    self.per_node = int(first) // node
        elif self.per_node is None and ("per_node" in text or "ocal_world" in text.lower() or "local_procs" in text):
            found = _PER_NODE.search(text)
            self.per_node = int(found[1]) or None if found else None

    def _node(self, line: Line) -> int | None:
        if line.node is not None:
            return line.node
        if line.pod is not None:
            if _FIRST_POD.search(line.pod):
                self._master = True
                return 0
            if found := _POD.search(line.pod):
                return int(found[1]) + (self._master and "-worker-" in line.pod)
        return self._nodes.get(line.host or line.stream)


def _is_of_agent(text: str) -> bool:
    """Returns whether a launcher's agent wrote a line. Workers' tracebacks also pass through its files."""
    return text[:2] != "  " and any(word in text for word in AGENT)
