"""The forms of other programs: each has a line that shows it, in every engine that looks for it."""

from __future__ import annotations

import re

import pytest
import re2

from tests.facts import collected
from torchtriage.domain.line import Line
from torchtriage.facts.line_facts import SIGNS
from torchtriage.facts.line_origin import FOREIGN
from torchtriage.knowledge.loader import load
from torchtriage.matching.patterns import Patterns, regex_of

# Instructions of a compiled pattern. From some 17,000 on RE2 has no memory for its quick automaton (8 MiB): it says so on
# stderr at each search and takes a slow one, which finds the same.
MOST = 12_000
EXAMPLES = """\
\tat com.shop.Basket.add(Basket.java:10)
   at Program.Main() in /src/Program.cs:line 8
Caused by: org.apache.kafka.common.KafkaException: gone
goroutine 1 [running]:
panic: runtime error: index out of range [3]
thread 'main' panicked at src/main.rs:4:5:
Unhandled exception. System.IO.IOException: gone
    at Module._load (node:internal/modules/cjs/loader:1023:12)
    at process.emit(node:events:513:28)
(unhandled promise) gone
    at Basket (Basket.jsx:12:20)
Uncaught TypeError: gone
FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory
 2: 0xa1b70e node::Abort() [node]
Subject: Cron <root@b1> backup.sh
From: root@b1 (Cron Daemon)
forrtl: severe (174): SIGSEGV
At line 12 of file model.f90
Execution halted
Error in library("tidyverse") : there is no package
npm ERR! code ELIFECYCLE
12 verbose stack Error
error[E0425]: cannot find value
  --> src/main.rs:4:5
[maven] it stopped
Could not run gradle
error: could not compile `shop`
   Compiling libc v0.2.153
[ 12%] Building CXX object
make[2]: *** [all] Error 2
-- The CXX compiler identification is GNU
c++: fatal error: Killed signal terminated program cc1plus
/usr/bin/ld: cannot find -lboost
Step 2/9 : RUN make
#12 0.123 fetching
Err:1 http://archive.example jammy InRelease
E: Unable to locate package foo
the terraform plan
Terraform used the providers
TASK [install shop]
##[group]Run make
section_start:1700000000:build
Started by user admin
Build step 'Execute shell' marked build as failure
=================== test session starts ===================
FAILED tests/test_basket.py::test_add - KeyError: 'a'
Ran 12 tests in 0.3s
N E X T F L O W  ~  version 23
Error executing process > 'align'
Error in rule align:
the snakemake workflow
the nextflow run
fatal: unable to access 'https://code.example/'
fetch-pack: unexpected disconnect
remote: Counting objects: 3
rsync: connection unexpectedly closed
curl: (7) Failed to connect
127.0.0.1 - - [12/Mar/2026 10:10:07] x
"GET /item/3 HTTP/1.1" 500
the nginx worker
DETAIL:  Key is there
[311] LOG:  checkpoint
3121:M 02 Apr 2026 10:11:12.131 # gone
{"c":"STORAGE", "id":22430,
  File "/srv/lib/site-packages/flask/app.py", line 1
  File "manage.py", line 22
[ 3438.580109] INFO: task mysqld:24916 blocked for more than 120 seconds.
2026-05-01 10:00:03,613::ERROR::[filesystem:747] Failed making (/data/incomplete/a)
homeassistant.components.zha
Cycles: CUDA error: Out of memory
Read prefs: /home/u/.config/blender/3.6/config
Hashrate 92.11
  on main.tf line 3, in resource
GPU #0: 98.1 MH/s, epoch 480
SCF run NOT converged. qs_scf.F:611
[Server thread/ERROR]: the port is taken
ActiveRecord::ConnectionNotEstablished
Started GET "/orders/3" for 192.0.2.7
mysqldump: Got errno 28 on write
panic: listen tcp :8080
[M::process] read 9 sequences
[vg prune] Removed all paths
 mo_util_cdi:deleteInputParameters: gone
the JVM of neo4j
the elasticsearch node
the cassandra node
  Plugin error from vsearch:
gone: /scratch/reads/s1.fastq
gone: /scratch/reads/s1.fq.gz
gone: calls/s1.vcf.gz
gone: aligned/s1.bam
gone: aligned/s1.cram
gone: graph/s1.gfa
h1 systemd[1]: system-postgresql.slice: gone
samtools sort: failed
the airflow scheduler
celery@worker1 ready
scrapy.core.engine
START RequestId: 3f2 Version: 7
  File "/var/task/app.py", line 2
Failed password for root from 192.0.2.4
systemd[1]: mysql.service: gone
Main process exited, code=killed
Killed process 1211 (mysqld)
[MY-010119] Aborting
Liveness probe failed: HTTP 500
web-7d5 0/1 Error
port is already allocated
Cannot start service db
Creating network "shop"
repository does not exist or may require 'docker login'
docker-compose.yml
docker compose up
synostorage: Volume 1
comm smbd gone
on DiskStation
2m  Warning  Evicted  pod/prometheus-0  The node was low on resource
ffmpeg version 4.4.2
  built with gcc 11
[h264 @ 0x55d2c9c2e6c0] gone
Starting simpleFoam of OpenFOAM
Foam::error::printStack
 running on   64 total cores
 Error EDDDAV: gone
gmx mdrun -deffnm md
LAMMPS (2 Aug 2023)
GROMACS: gone
 vasp.6.3.0 20Jan22
     Program PWSCF v.7.2 starts
Quantum ESPRESSO suite
srun pw.x -in a.in
 CP2K| version
srun cp2k.psmp -i a.inp
Info: NAMD 2.14
Charm++> Running
srun wrf.exe
the abaqus job
srun pmemd -O
the NWChem run
 Entering Gaussian System, Link 0
srun lmp_mpi -in a.in
srun gmx_mpi mdrun
fatal: [web02]: UNREACHABLE! => {"changed": false}
Blender 4.1.0
see https://docs.blender.org/manual
Refer to the Cycles GPU rendering documentation
Error: Out of memory in CUDA queue zero_to_device
CUDA error: Out of memory in cuMemAlloc(&device_pointer, size)
Fra:12 Mem:2381.13M (Peak 2402.21M)
OptiX denoiser failed
OctaneRender 2023
Redshift 3.5.14 starting
hashcat (v6.2.6) starting
* Device #1: NVIDIA GeForce, 8191 MB
cuModuleLoadDataEx(): no kernel image
09:12:11:WU00:FS01:0x22:An exception occurred
WU00:FS01:0x22:Folding@home GPU FAHCore
ethminer 0.19 started
speed: Accepted 12/12 at 61.2 MH/s
LogD3D12RHI: Error: device removed
the UnityPlayer crashed
GameOverlay: started the game (pid 2)
vkCreateDevice failed: -4
error VK_ERROR_DEVICE_LOST
[12:ERROR:gpu_process_host.cc(991)] it exited
GPU process isn't usable. Goodbye.
box Plex Media Server[441]: started
Jellyfin has started
nvEncInitializeEncoder failed: 8
NVENC Error: it is not there
--> FOAM FATAL ERROR:
Creating archive at "/mnt/backup::d1"
a restic repository
ERROR borg.archiver: gone
  File "/usr/lib/python3.11/site-packages/borg/repository.py", line 12, in put
Remote: client_loop: send disconnect: Broken pipe
Remote: Read from remote host b1.example: Connection reset by peer
qemu:mail-vm invoked oom-killer: gfp_mask=0x24200ca
  File "/srv/shop/passenger_wsgi.py", line 8, in <module>
Require stack:
- /srv/pool/node_modules/hashes/utils.js
elastic-operator-0   1/1   Running   1   67m
May 01 09:00:00 box lotus-worker[30970]: started
bellperson::gpu::locks: taken
################ OPENCL ERROR ###############
duplicity failed
firefox[4411]: segfault at 10
CMake Error at CMakeLists.txt:31 (find_package):
openmm.OpenMMException: gone
CUDA error 'out of memory' in func 'eq_cuda_context<RB, SM>::solve' line 20
11:37:42 TREX: Can't find nonce with device [ID=2, GPU #2]
2026-04-02 10:11:12 IST [2445]: user=u,db=d,client=FATAL:  could not write to file
Program received signal SIGSEGV: Segmentation fault - invalid memory reference.
rank 7 in job 2  b1_4950   caused collective abort of all ranks
File: /var/log/libvirt/hooks.log
1148 plasmashell
MATLAB Root        : /opt/MATLAB/R2024a
  Crash Decoding           : Disabled
*** Error in '/usr/bin/octave-cli': double free
Source: custom_components/lamp/__init__.py:47
gmake[2]: *** [all] Error 2
logging-kibana-1-x9     1/2    CrashLoopBackOff
acemd3: the run ends
# SWAN : FATAL : Cuda driver error 700
 Process game.exe pid 47714 thread dxvk-submit pid 47850
 Process chess pid 18 thread VKRenderThread pid 19
process Xorg pid 1037 thread Xorg:cs0 pid 1046
[gazebo-2] process has died [pid 23180, exit code 139, cmd gone
source /opt/ros/noetic/setup.bash
roslaunch shop world.launch
gzserver is gone
Current file:     /home/u/wave_main.F90
This file was compiled: -ta=tesla:cc70
ntfs_attr_pread_i: ntfs_pread failed
NTFS is either inconsistent
colmap patch_match_stereo --workspace_path dense
colmap::mvs::PatchMatchController::Run()
PatchMatch::Run
CUDA error at src/mvs/gpu_mat.h:348
I20260501 09:00:01.001 12 cudacc.cc:51] Initialization: 0.2s
gpu_mat.cu: error: #error "opencv_cudev is required"
  Process `STAR (a1)` terminated with an error exit status (137)
run.sh: line 16: 18878 Killed                  /opt/bin/bwa index a.fa
telethon.network.mtprotosender [INFO] - gone
cudaCustomAllocator is full
pmemd.cuda -O -i md.in
Error: gone launching kernel kReduce
darknet: ./src/utils.c:12: it stopped
    2 conv     64  3 x 3 / 2   208 x 208 x  32 0.177 BFLOPs
Region 82 Avg IOU: 0.81, Class: 0.9
 120: 1.31, 1.29 avg loss, 0.001 rate, 4.1 seconds
ERROR: LoadError: gone
in /home/u/.julia/packages/Flux/src
    @ Main ~/fit.jl:12
(CuArray{Float32, 2, CUDA.Mem
Effective GPU memory usage: 99.51%
ggml_gallocr_reserve_n: gone
llama_model_load: gone
llm_load_tensors: gone
eval time: 21.31 ms per token,    46.91 tokens per second
[2026-05-01 09:00:00,001: ERROR/MainProcess] gone
billiard.exceptions.TimeLimitExceeded: gone
Process 'ForkPoolWorker-3' pid:27 is gone
[2026-05-01 09:00:00 +0000] [7] [CRITICAL] WORKER TIMEOUT (pid:12)
telegram.error.NetworkError: gone
discord.client: gone
INFO:     Will watch for changes in these directories: ['/srv']
 * Serving Flask app 'shop'
[h264_nvenc] OpenEncodeSessionEx failed
what(): out of memory /src/lammps/lib/kokkos/core/src/Cuda/Kokkos_CudaSpace.cpp:10
error( cudaErrorIllegalAddress) /opt/kokkos-4.4.01-abcdef/include/Cuda/Kokkos_Cuda_KernelLaunch.hpp:12
[0x7fff00000001] Kokkos::Impl::host_abort(char const*)
  [0:1] CmiAbort+0x2d  [0x5e0001]
Fatal CUDA Error out of memory at cuda-hybrid-api.cu:12.
  x  03:51:30|cudaminer0  Error CUDA mining: an illegal memory access was encountered
cuMemFree(): an illegal memory access was encountered
cuEventSynchronize(): unknown error
cuStreamDestroy(): an illegal memory access was encountered
cuModuleUnload(): an illegal memory access was encountered
cuCtxPushCurrent(): invalid device context
  what():  /home/u/thirdParty/mallocMC/src/reservePoolPolicies/SimpleCudaMalloc_impl.hpp(4): out of memory
picongpu: the simulation ends
ai.rapids.cudf.CudaFatalException: cudaErrorIllegalAddress
com.nvidia.spark.rapids.GpuDeviceManager started
CUDA error !!!!! <out of memory> !!!!!
at CUDA call error code: # 24
amrex::Abort::1::CUDA error 2 in file AMReX_Arena.cpp line 1: out of memory !!!
ERROR (nnet3-train[5.5]:AllocateNewRegion():cu-allocator.cc:5) Failed to allocate a memory region
LOG (cuda-decoder-worker[5.5.0]:AllocateNewRegion():cu-allocator.cc:4) About to allocate
CUDA error in func 'search' at line 36 : unspecified launch failure.
Traceback functionality not available
psql: error: connection to server failed
Can't locate Shop/Basket.pm in @INC (@INC contains: /etc/perl) at shop.pl line 3.
BEGIN failed--compilation aborted at shop.pl line 3.
terminate called after throwing an instance of 'CUDA::error'"""


def instructions(pattern: str) -> int:
    """-> how large RE2's compiled form of a pattern is, the larger of both directions."""
    compiled = re2.compile(f"(?m){pattern}")
    sizes: list[int] = [compiled.programsize, compiled.reverseprogramsize]
    return max(sizes)


def alternatives(pattern: str) -> list[str]:
    """-> the parts of a pattern between its outermost bars."""
    parts: list[str] = []
    begun, depth, inside, at = 0, 0, False, 0
    while at < len(pattern):
        sign = pattern[at]
        inside = sign == "[" if not inside else sign != "]"
        depth += {"(": 1, ")": -1}.get(sign, 0) if not inside else 0
        if sign == "|" and not inside and depth == 0:
            parts.append(pattern[begun:at])
            begun = at + 1
        at += 2 if sign == "\\" else 1
    return [*parts, pattern[begun:]]


@pytest.mark.parametrize("form", [form for sign in FOREIGN for form in alternatives(sign.pattern)])
def test_each_form_of_another_program_has_a_line_that_shows_it(form: str) -> None:
    assert any(re.search(form, line) for line in EXAMPLES.split("\n"))


@pytest.mark.parametrize("line", EXAMPLES.split("\n"))
def test_each_line_is_another_programs_by_all_that_look_for_it(line: str) -> None:
    shown = [sign for sign in FOREIGN if sign.regex.search(line)]
    assert shown
    assert all(sign.shows(line) for sign in shown)
    assert collected(Line(1, line, line, 1)).foreign == 1


def test_no_sign_is_near_the_memory_of_its_automaton() -> None:
    assert max(instructions(sign._loose) for sign in SIGNS) < MOST


def test_no_sign_of_an_entry_is_either() -> None:
    signs = [pattern.sign for pattern in Patterns(load()).all]
    texts = {text for sign in signs for text in (regex_of(sign), sign.unless) if text}
    assert {text for text in texts if instructions(text) >= MOST} == set()
