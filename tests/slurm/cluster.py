"""A real Slurm for tests: munged, slurmctld and slurmd of Debian's packages, with a configuration and state of their own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "scancel")
PACKAGES = ("slurmctld", "slurmd", "slurm-client", "munge")  # Debian's
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
_OVER = ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED")


def missing() -> str | None:
    """Returns why there can be no cluster here; None where there can."""
    absent = [name for name in PROGRAMS if shutil.which(name, path=_PATH) is None]
    if absent:
        return f"no Slurm here: {', '.join(absent)} not found (apt-get install {' '.join(PACKAGES)})"
    return None if os.geteuid() == 0 else "Slurm is started by root only"


class Cluster:
    """One node, one partition, times shortened. Jobs find the client's files in `installed`, and the service at `url`."""

    def __init__(self, installed: Path, url: str) -> None:
        # A path of its own: sockets want short ones, and munged refuses folders that others can't reach.
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
        self.folder.chmod(0o755)
        self._stack = ExitStack()
        self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.config, self.node = self.folder / "slurm.conf", socket.gethostname().partition(".")[0]
        self.notes, self.spool = self.folder / "notes", self.folder / "spool"
        self.notes.mkdir()
        self.environment = {
            **os.environ,
            "PATH": _PATH,
            "HOME": str(self.folder),
            "SLURM_CONF": str(self.config),
            "TORCHTRIAGE_HOME": str(installed),
            "TORCHTRIAGE_URL": url,
            "TORCHTRIAGE_SPOOL": str(self.spool),
            "TORCHTRIAGE_WAIT": "60",
        }
        epilog = self.folder / "epilogslurmctld"
        epilog.write_text(
            (installed / "epilogslurmctld").read_text().replace("/var/spool/torchtriage", str(self.notes))
        )
        epilog.chmod(0o755)
        self._write_config(epilog)

    def __enter__(self) -> Cluster:
        try:
            key = self.folder / "munge.key"
            key.write_bytes(os.urandom(128))
            key.chmod(0o600)
            files = [f"--{name}-file={self.folder / ('munge.' + name)}" for name in ("key", "log", "pid", "seed")]
            self._start("munged", "--foreground", "--force", f"--socket={self.folder / 'munge.socket'}", *files)
            self.until(lambda: (self.folder / "munge.socket").exists(), "munged does not start")
            self._start("slurmctld", "-D", "-f", str(self.config))
            self._start("slurmd", "-D", "-f", str(self.config), "-N", self.node)
            self.until(lambda: "idle" in self.run("sinfo", "-h", "-o", "%t"), "the node does not become idle")
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def run(self, *command: str) -> str:
        """Returns what a command of Slurm prints; what it complains about too."""
        done = subprocess.run(
            command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        return done.stdout

    def submit(self, script: str, *options: str, arguments: tuple[str, ...] = ()) -> str:
        """Returns the id of a batch job that runs `script`."""
        path = self.folder / f"{len(list(self.folder.glob('*.sbatch')))}.sbatch"
        path.write_text(script)
        command = ["sbatch", "--parsable", *options, str(path), *arguments]
        done = subprocess.run(command, env=self.environment, cwd=self.folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def end_at_its_time_limit(self, job: str) -> None:
        """Has Slurm end a running job as it does where the time is used up, without a minute's wait."""
        self.until(lambda: self.facts(job).get("JobState") == "RUNNING", f"job {job} does not start")
        # `now` is written down to the second by scontrol and is past for slurmctld where the next one has begun.
        ending = ["scontrol", "update", f"JobId={job}", "EndTime=now"]
        self.until(lambda: not self.run(*ending).strip(), f"job {job} takes no new end")

    def facts(self, job: str) -> dict[str, str]:
        words = self.run("scontrol", "show", "job", job, "-o").split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def ended(self, job: str) -> dict[str, str]:
        """Waits for the end of a job -> what scontrol says of it."""
        self.until(lambda: self.facts(job).get("JobState", "") in _OVER, f"job {job} does not end", 180)
        return self.facts(job)

    def until(self, reached: Callable[[], bool], problem: str, seconds: float = 60) -> None:
        """Looks again and again until it is so."""
        deadline = time.monotonic() + seconds
        while not reached():
            assert time.monotonic() < deadline, f"{problem}: {self._last_words()}"
            time.sleep(0.1)

    def _last_words(self) -> str:
        return "\n".join(path.read_text(errors="replace")[-2000:] for path in self.folder.glob("*.out"))

    def _start(self, name: str, *arguments: str) -> None:
        program = shutil.which(name, path=_PATH)
        assert program is not None
        with (self.folder / f"{name}.out").open("wb") as output:
            process = subprocess.Popen([program, *arguments], env=self.environment, stdout=output, stderr=output)
        self._stack.callback(process.wait)
        self._stack.callback(process.terminate)

    def _write_config(self, epilog: Path) -> None:
        state, spool = self.folder / "state", self.folder / "slurmd"
        state.mkdir()
        spool.mkdir()
        controller, node = _free_ports()
        self.config.write_text(f"""\
ClusterName=blue
SlurmctldHost={socket.gethostname()}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={self.folder}/munge.socket
CredType=cred/munge
StateSaveLocation={state}
SlurmdSpoolDir={spool}
SlurmctldPidFile={self.folder}/slurmctld.pid
SlurmdPidFile={self.folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
KillWait=2
OverTimeLimit=0
MinJobAge=300
JobRequeue=1
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0
EpilogSlurmctld={epilog}
NodeName={self.node} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} RealMemory=4000 State=UNKNOWN
PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
""")


def _free_ports() -> tuple[int, int]:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        return one.getsockname()[1], other.getsockname()[1]
