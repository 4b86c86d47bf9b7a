"""What tools print of a bad host, GPU, link or job, cut to what matters; in the form of each tool's own output."""

from __future__ import annotations

NVIDIA_SMI_Q = """
==============NVSMI LOG==============

Timestamp                                 : Fri May  1 09:06:02 2026
Driver Version                            : 550.54.15
CUDA Version                              : 12.4

Attached GPUs                             : 2
GPU 00000000:3B:00.0
    Product Name                          : NVIDIA H100 80GB HBM3
    MIG Mode
        Current                           : Disabled
        Pending                           : Disabled
    Clocks Event Reasons
        HW Slowdown                       : Not Active
            HW Thermal Slowdown           : Not Active
    ECC Errors
        Volatile
            DRAM Correctable              : 0
            DRAM Uncorrectable            : {errors}
        Aggregate
            DRAM Uncorrectable            : 7
    Remapped Rows
        Correctable Error                 : 0
        Uncorrectable Error               : {errors}
        Pending                           : {pending}
        Remapping Failure Occurred        : {failed}
    Processes                             : None

GPU 00000000:86:00.0
    Product Name                          : NVIDIA H100 80GB HBM3
    Remapped Rows
        Pending                           : No
        Remapping Failure Occurred        : No
"""
# Driver 580 sets the values farther to the right.
NVIDIA_SMI_Q_580 = NVIDIA_SMI_Q.replace("550.54.15", "580.95.05").replace(" : ", f"{13 * ' '} : ")
NVIDIA_SMI_XML = """<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
	<timestamp>Fri May  1 09:06:02 2026</timestamp>
	<attached_gpus>1</attached_gpus>
	<gpu id="00000000:3B:00.0">
		<product_name>NVIDIA H100 80GB HBM3</product_name>
		<gpu_reset_status>
			<reset_required>{reset}</reset_required>
			<drain_and_reset_recommended>No</drain_and_reset_recommended>
		</gpu_reset_status>
		<gpu_recovery_action>{action}</gpu_recovery_action>
		<ecc_errors>
			<volatile>
				<sram_uncorrectable_secded>{errors}</sram_uncorrectable_secded>
				<dram_uncorrectable>0</dram_uncorrectable>
			</volatile>
		</ecc_errors>
		<remapped_rows>
			<remapped_row_pending>{pending}</remapped_row_pending>
			<remapped_row_failure>{failed}</remapped_row_failure>
		</remapped_rows>
		<processes>
		</processes>
	</gpu>
</nvidia_smi_log>
"""
NCCL_DIAGNOSTICS = """gpu-020:3487 NCCL DIAG === RAS Diagnostics ===
gpu-020:3487 NCCL DIAG [OK]   NVLink: 18 links per GPU, all active at consistent speed across 16 ranks in comm 0x5dbae1b9
gpu-020:3487 NCCL DIAG [INFO] {said}
gpu-020:3487 NCCL DIAG RAS diagnostics completed in 812.4 ms across 16 ranks
"""
# {journal}: lines of the system's log; {dmesg}: those of the ring buffer
BUG_REPORT = (
    """____________________________________________

Start of NVIDIA bug report log file.  Please include this file, along
with a detailed description of your problem, when reporting a graphics
driver bug via the NVIDIA Linux forum (see forums.developer.nvidia.com)
or by sending email to 'linux-bugs@nvidia.com'.

nvidia-bug-report.sh Version: 33986441

Date: Fri May  1 09:20:41 UTC 2026
uname: Linux gpu-021 5.15.0-105-generic #115-Ubuntu SMP Mon Apr 15 09:52:04 UTC 2024 x86_64 x86_64 x86_64 GNU/Linux
command line flags: --safe-mode

____________________________________________

*** /etc/issue
*** ls: -rw-r--r-- 1 root root 26 2024-04-18 11:36:43.000000000 +0000 /etc/issue
Ubuntu 22.04.4 LTS \\n \\l


____________________________________________

*** /var/log/nvidia-installer.log does not exist

____________________________________________

Scanning kernel log files for NVIDIA kernel messages:

  /var/log/kern.log:
{journal}
____________________________________________

dmesg:

{dmesg}
____________________________________________

*** /proc/driver/nvidia/./version
*** ls: -r--r--r-- 1 root root 0 2026-05-01 09:20:44.129310004 +0000 /proc/driver/nvidia/./version
NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024
GCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04)

____________________________________________

/usr/bin/nvidia-smi --query
"""
    + NVIDIA_SMI_Q
    + """
/usr/bin/nvidia-smi --query --unit


____________________________________________

/usr/bin/nvidia-debugdump -D

RVdFTSBubyBlcnJvciBoZXJlIE5WUk06IFhpZCA3OSBpcyBub3QgbWVhbnQ=

____________________________________________

End of NVIDIA bug report log file.
"""
)
NVIDIA_SMI_TABLE = """Fri May  1 09:06:02 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|=========================================+========================+======================|
|   3  NVIDIA H100 80GB HBM3          On  |   00000000:3B:00.0 Off | {errors:>20} |
| N/A   34C    P0             71W /  700W |{state:^24}|      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|=========================================================================================|
|    0   N/A  N/A      4711      C   python                                      70000MiB |
+-----------------------------------------------------------------------------------------+
"""
DCGM_HEALTH = """+---------------------------+----------------------------------------------------------+
| Health Monitor Report                                                                |
+===========================+==========================================================+
| Overall Health            | Failure                                                  |
| GPU                       |                                                          |
| -> 3                      | Failure                                                  |
|    -> Errors              |                                                          |
|       -> Memory system    | Failure                                                  |
|                           | GPU 3 had uncorrectable memory errors and row            |
|                           | remapping failed. Run a field diagnostic on the GPU.     |
+---------------------------+----------------------------------------------------------+
"""
DCGM_HEALTH_JSON = """{
	"body" :
	{
		"GPU" :
		{
			"children" :
			{
				"3" :
				{
					"children" :
					{
						"Errors" :
						{
							"children" :
							{
								"Memory system" :
								{
									"children" :
									{
										"Error 0" :
										{
											"value" : "GPU 3 had uncorrectable memory errors and row remapping failed."
										}
									},
									"value" : "Failure"
								}
							}
						}
					},
					"value" : "Failure"
				}
			}
		},
		"Overall Health" :
		{
			"value" : "Failure"
		}
	},
	"header" :
	[
		"Health Monitor Report"
	]
}
"""
DCGM_DIAG = """Successfully ran diagnostic for group.
+---------------------------+------------------------------------------------+
| Diagnostic                | Result                                         |
+===========================+================================================+
|-----  Metadata  ----------+------------------------------------------------|
| DCGM Version              | 3.3.5                                          |
|-----  Deployment  --------+------------------------------------------------|
| Denylist                  | Pass                                           |
| Page Retirement/Row Remap | Fail                                           |
| Warning                   | GPU 3 A GPU row remap is pending. Reset the G  |
|                           | PU.                                            |
+-----  Integration  -------+------------------------------------------------+
| PCIe                      | Pass - All                                     |
+-----  Hardware  ----------+------------------------------------------------+
| GPU Memory                | Fail - GPU: 3                                  |
+---------------------------+------------------------------------------------+
"""
DCGM_DIAG_JSON = """{
	"DCGM Diagnostic" :
	{
		"test_categories" :
		[
			{
				"category" : "Hardware",
				"tests" :
				[
					{
						"name" : "memory",
						"results" :
						[
							{
								"entity_group" : "GPU",
								"entity_id" : 0,
								"status" : "Pass"
							},
							{
								"entity_group" : "GPU",
								"entity_id" : 3,
								"status" : "Fail",
								"warnings" :
								[
									{
										"error_id" : 95,
										"warning" : "WORDS"
									}
								]
							}
						],
						"test_summary" : { "status" : "Fail" }
					}
				]
			}
		]
	}
}
"""
# DCGM 3 puts what a test of the installation says under another name; 4 says some of it in a test's summary alone.
DCGM_DIAG_JSON_3 = """{
   "DCGM Diagnostic" : {
      "test_categories" : [
         {
            "category" : "Deployment",
            "tests" : [
               { "name" : "Denylist", "results" : [ { "status" : "Pass" } ] },
               {
                  "name" : "Page Retirement/Row Remap",
                  "results" : [ {
                        "gpu_id" : 3,
                        "status" : "Fail",
                        "warnings" : [ { "error_id" : 45, "warnings" : "WORDS" } ]
                  } ]
               }
            ]
         }
      ]
   },
   "DCGM Version" : "3.3.5"
}
"""
DCGM_DIAG_JSON_TWICE = '{"iterations": [' + DCGM_DIAG_JSON + '], "result": "Fail"}'
DCGM_DIAG_JSON_SUMMARY = """{
	"DCGM Diagnostic" :
	{
		"test_categories" :
		[
			{
				"category" : "Deployment",
				"tests" :
				[
					{
						"name" : "software",
						"results" : [ { "entity_group" : "GPU", "entity_id" : 3, "status" : "Pass" } ],
						"test_summary" : { "status" : "Fail", "warnings" : [ { "error_id" : 83, "warning" : "WORDS" } ] }
					}
				]
			}
		]
	},
	"metadata" : { "DCGM Version" : "4.2.3" }
}
"""
DCGM_DIAG_JSON_NODES = """{
   "hosts" : [ { "host_id" : 0, "hostname" : "gpu-020" }, { "host_id" : 1, "hostname" : "gpu-021" } ],
   "test_categories" : [
      {
         "category" : "Multi-Node Tests",
         "tests" : [
            {
               "name" : "MNUBERGEMM",
               "results" : [
                  { "host_id" : 0, "entity_group" : "GPU", "entity_id" : 3, "status" : "Pass" },
                  { "host_id" : 1, "entity_group" : "GPU", "entity_id" : 3, "status" : "Fail",
                    "warnings" : [ { "error_id" : 1, "warning" : "WORDS" } ] }
               ],
               "test_summary" : { "status" : "Fail", "warnings" : [ { "error_id" : 1, "warning" : "WORDS" } ] }
            }
         ]
      }
   ]
}
"""
IBSTAT = """CA 'mlx5_0'
	CA type: MT4129
	Number of ports: 1
	Port 1:
		State: Active
		Physical state: LinkUp
		Rate: 400
		Link layer: InfiniBand
CA 'mlx5_3'
	CA type: MT4129
	Number of ports: 1
	Port 1:
		State: Down
		Physical state: Polling
		Rate: 40
		Link layer: InfiniBand
"""
IBSTATUS = """Infiniband device 'mlx5_3' port 1 status:
	default gid:	 fe80:0000:0000:0000:b8ce:f603:006b:5a5f
	base lid:	 0xffff
	state:		 1: DOWN
	phys state:	 2: Polling
	rate:		 10 Gb/sec (4X SDR)
	link_layer:	 InfiniBand
"""
IBDIAGNET = """----------
Load Plugins from:
/usr/share/ibdiagnet2.1.1/plugins/
---------------------------------------------
Discovery
-I- Discovering ... 129 nodes (1 Switches & 128 CA-s) discovered.
---------------------------------------------
Port Counters
-E- gpu-021/U1/P1 - "link_down_counter" increased during the run (difference value=3,difference allowed threshold=0)
---------------------------------------------
Summary
-I- Stage                     Warnings   Errors     Comment
-I- Discovery                 0          0
-I- Port Counters             0          1
"""
DMESG = """[Fri May  1 03:00:00 2026] Linux version 5.15.0-105-generic (buildd@lcy02) #115-Ubuntu SMP
[{time}] NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus.
"""
DMESG_OOM = """[Fri May  1 03:00:00 2026] Linux version 5.15.0-105-generic (buildd@lcy02) #115-Ubuntu SMP
[{time}] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=job_31,mems_allowed=0-1,\
oom_memcg=/slurm/uid_1000/job_31,task_memcg=/slurm/uid_1000/job_31/step_0,task=python,pid=2211,uid=1000
[{time}] Memory cgroup out of memory: Killed process 2211 (python) total-vm:201326592kB, anon-rss:98304000kB, \
file-rss:1024kB, shmem-rss:0kB, UID:1000 pgtables:200000kB oom_score_adj:0
"""
JOURNAL = """{"__CURSOR":"s=1;i=1","__REALTIME_TIMESTAMP":"1777626300440118","_TRANSPORT":"kernel","_HOSTNAME":"gpu-021",\
"MESSAGE":"nvidia 0000:3b:00.0: enabling device (0140 -> 0142)"}
{"__CURSOR":"s=1;i=2","__REALTIME_TIMESTAMP":"1777626301440118","_TRANSPORT":"kernel","_HOSTNAME":"gpu-021",\
"MESSAGE":"NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus."}
"""
SACCT = """JobID           JobName  Partition    Account  AllocCPUS      State ExitCode
------------ ---------- ---------- ---------- ---------- ---------- --------
4711              train        gpu        lab         64  NODE_FAIL      1:0
4711.batch        batch                   lab         64  CANCELLED
4711.0         torchrun                   lab         64  CANCELLED     0:15
"""
SACCT_P = """JobID|JobName|State|ExitCode|Start|End|NodeList
4711|train|{state}|0:0|2026-05-01T03:05:11|{end}|gpu-[021-022]
4711.batch|batch|CANCELLED|0:15|2026-05-01T03:05:11|{end}|gpu-021
4711.0|torchrun|OUT_OF_MEMORY|0:125|2026-05-01T03:05:11|{end}|gpu-[021-022]
"""
SCONTROL = """JobId=4711 JobName=train
   UserId=ho(1000) GroupId=ho(1000) MCS_label=N/A
   JobState=TIMEOUT Reason=TimeLimit Dependency=(null)
   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:15
   StartTime=2026-05-01T03:05:11 EndTime=2026-05-01T09:05:23 Deadline=N/A
   NodeList=gpu-[021-022]
"""
PODS = """NAME             READY   STATUS      RESTARTS      AGE
train-worker-0   0/1     OOMKilled   3 (2m ago)    12m
train-worker-1   1/1     Running     0             12m
"""
EVENTS = """LAST SEEN   TYPE      REASON             OBJECT              MESSAGE
12m         Normal    Scheduled          pod/train-worker-0  Successfully assigned default/train-worker-0 to gpu-021
2m          Warning   Evicted            pod/train-worker-0  The node was low on resource: memory. Threshold quantity: \
100Mi, available: 80Mi. Container pytorch was using 480Gi, request is 0, has larger consumption of memory.
2m          Normal    Killing            pod/train-worker-0  Stopping container pytorch
"""
EVENTS_YAML = """apiVersion: v1
items:
- apiVersion: v1
  involvedObject:
    kind: Pod
    name: train-worker-0
  kind: Event
  lastTimestamp: "2026-05-01T09:05:11Z"
  message: 'The node was low on resource: memory. Threshold quantity: 100Mi, available: 80Mi. '
  reason: Evicted
  type: Warning
kind: List
metadata:
  resourceVersion: ""
"""
POD = """{
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "train-worker-0"
    },
    "spec": {
        "nodeName": "gpu-021"
    },
    "status": {
        "containerStatuses": [
            {
                "name": "pytorch",
                "restartCount": 1,
                "lastState": {
                    "terminated": {
                        "exitCode": 137,
                        "finishedAt": "2026-05-01T09:05:11Z",
                        "reason": "OOMKilled",
                        "startedAt": "2026-05-01T03:05:11Z"
                    }
                },
                "state": {
                    "waiting": {
                        "reason": "CrashLoopBackOff"
                    }
                }
            }
        ],
        "phase": "Running"
    }
}
"""
METRICS = """# HELP DCGM_FI_DEV_XID_ERRORS Value of the last XID error encountered.
# TYPE DCGM_FI_DEV_XID_ERRORS gauge
DCGM_FI_DEV_XID_ERRORS{gpu="2",UUID="GPU-a8",pci_bus_id="00000000:2A:00.0",Hostname="gpu-021",err_msg="No Error"} 0
DCGM_FI_DEV_XID_ERRORS{gpu="3",UUID="GPU-a9",pci_bus_id="00000000:3B:00.0",Hostname="gpu-021",err_msg="GPU lost"} 79
# TYPE DCGM_FI_DEV_ROW_REMAP_FAILURE gauge
DCGM_FI_DEV_ROW_REMAP_FAILURE{gpu="3",UUID="GPU-a9",Hostname="gpu-021"} 0
DCGM_FI_DEV_GPU_TEMP{gpu="3",UUID="GPU-a9",Hostname="gpu-021"} 41
"""
GDB = """[New LWP 1408]
[Thread debugging using libthread_db enabled]
0x00007f794fca474d in poll () at ../sysdeps/unix/syscall-template.S:84

Thread 2 (Thread 0x7f78c97e2700 (LWP 1408) "pt_autograd_0"):
#0  0x00007f794fca474d in poll () at ../sysdeps/unix/syscall-template.S:84
#1  0x00007f794fcb041d in clone () at ../sysdeps/unix/sysv/linux/x86_64/clone.S:109

Thread 1 (Thread 0x7f794ffa5740 (LWP 1400) "python"):
#0  0x00007f78f42ff793 in {function} (this=0x55d0) from /usr/lib/libtorch_cpu.so
#1  0x00007f78f4301e18 in _PyEval_EvalFrameDefault (f=Frame 0x55d1, for file /job/train.py, line 30, in fit (x=1)) at ceval.c:1
#2  0x00007f78f4301e19 in main ()
"""
CUDA_GDB = """CUDA Exception: Warp Illegal Address
The exception was triggered at PC 0x508ca70 (jacobi_kernels.cu:88)
Thread 1 "python" received signal CUDA_EXCEPTION_14, Warp Illegal Address.
[Switching focus to CUDA kernel 0, grid 4, block (0,0,0), thread (0,20,0), device 0, sm 0, warp 21, lane 0]
0x000000000508ca80 in jacobi_kernel<32, 32><<<(512,512,1),(32,32,1)>>> (a=0x7f) at jacobi_kernels.cu:88
88\t real foo = *((real*)nullptr);
(cuda-gdb)
"""
IBDIAGNET_NAMED = """Running version:   "IBDIAGNET 2.13.0.MLNX20230721.c7d4b7b","IBDIAG 2.1.1.c7d4b7b","IBDM 2.1.1.0ca8c9c"
Running command:   ibdiagnet --pc
Timestamp:         2026-05-01 09:06:02 UTC +0000
----------
Load Plugins from:
/usr/share/ibdiagnet2.1.1/plugins/
(You can specify more paths to be looked in with "IBDIAGNET_PLUGINS_PATH" env variable)

Plugin Name                                   Result     Comment
libibdiagnet_cable_diag_plugin-2.1.1          Succeeded  Plugin loaded
---------------------------------------------
Port Counters
-E- gpu-021 mlx5_2/U1/P1 - "link_down_counter" increased during the run (difference value=3,difference allowed threshold=0)
---------------------------------------------
Summary
-I- Stage                     Warnings   Errors     Comment
-I- Port Counters             0          1
"""
IBDIAGNET_1 = """Loading IBDIAGNET from: /usr/lib64/ibdiagnet1.5.7
-W- Topology file is not specified.
    Reports regarding cluster links will use direct routes.
Loading IBDM from: /usr/lib64/ibdm1.5.7
-I- Using port 1 as the local port.
-I---------------------------------------------------
-I- PM Counters Info
-I---------------------------------------------------
-W- lid=0x0007 guid=0x001e8cffff4c3a1c dev=26428 gpu-021/U1/P1
    Performance Monitor counter     : Value
    link_down_counter               : 0x3 (Increase by 3 during ibdiagnet scan.)
    symbol_error_counter            : 0xffff (overflow)
-I- Stages Status Report:
    STAGE                                    Errors Warnings
    Link State Active Check                  2      0
    Performance Counters Report              0      1
"""
SACCT_JSON = """{
  "jobs": [
    {
      "job_id": 4711,
      "name": "train",
      "nodes": "gpu-[021-022]",
      "state": {"current": ["TIMEOUT"], "reason": "TimeLimit"},
      "exit_code": {"return_code": {"set": true, "number": 0}, "signal": {"id": {"set": true, "number": 15}}},
      "time": {"start": 1777604711, "end": 1777626311}
    }
  ],
  "meta": {"slurm": {"version": {"major": "24"}}}
}
"""
SCONTROL_JSON = """{
  "jobs": [
    {"job_id": 4711, "name": "train", "job_state": "NODE_FAIL", "state_reason": "NodeDown", "nodes": "gpu-021",
     "exit_code": 256, "end_time": 1777626311}
  ]
}
"""
DESCRIBED_POD = """Name:             train-worker-0
Namespace:        ml
Node:             gpu-021/10.2.31.7
Status:           Running
Containers:
  pytorch:
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Finished:     Fri, 01 May 2026 09:05:11 +0000
Conditions:
  Type              Status
  Ready             False
Events:
  Type     Reason     Age   From     Message
  Warning  BackOff    12s   kubelet  Back-off restarting failed container pytorch in pod train-worker-0_ml(2d1)
"""
_XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1"
EVERY = {
    "nvidia-smi": [NVIDIA_SMI_Q.format(errors=0, pending="No", failed="No"),
                   NVIDIA_SMI_Q_580.format(errors=0, pending="No", failed="No"), NVIDIA_SMI_XML,
                   NVIDIA_SMI_TABLE.format(errors=0, state="1MiB /  81559MiB"),
                   "Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error\n"],
    "DCGM": [DCGM_HEALTH, DCGM_HEALTH_JSON, DCGM_DIAG, DCGM_DIAG_JSON,
             DCGM_DIAG_JSON_3, DCGM_DIAG_JSON_TWICE, DCGM_DIAG_JSON_SUMMARY, DCGM_DIAG_JSON_NODES],
    "NCCL diagnostics": [NCCL_DIAGNOSTICS.format(said="PCI paths: unavailable")],
    "InfiniBand": [IBSTAT, IBSTATUS, IBDIAGNET, IBDIAGNET_NAMED, IBDIAGNET_1],
    "kernel log": [DMESG.format(time="Fri May  1 09:05:01 2026"), JOURNAL,
                   "[    0.000000] Linux version 5.15.0\n[131912.440118] NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n",
                   "kern  :err   : [131912.440118] NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n",
                   "2026-05-01T09:05:01,440118+00:00 NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n",
                   "May 01 09:05:01 gpu-021 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n",
                   f"[    0.000000][    T0] Linux version 6.8.0\n[131912.440118][ T2011] {_XID}\n[131913.440118] [   C3] {_XID}\n",
                   f"May  1 09:04:01 gpu-021 systemd[1]: Started Session 31 of user root.\nMay  1 09:05:01 gpu-021 kernel: {_XID}\n"
                   "May  1 09:05:09 gpu-021 slurmd[991]: launch task\n",
                   '{"SYSLOG_IDENTIFIER":"systemd","_TRANSPORT":"journal","__REALTIME_TIMESTAMP":"1777626300440118"}\n'
                   '{"SYSLOG_IDENTIFIER":"kernel","__REALTIME_TIMESTAMP":"1777626301440118","_TRANSPORT":"kernel","MESSAGE":"'
                   + _XID + '"}\n',
                   f"5月 01 09:05:01 gpu-021 kernel: {_XID}\n",
                   f"May 01 09:05:01.440118 gpu-021 kernel: {_XID}\n",
                   f"Fri 2026-05-01 09:05:01 UTC gpu-021 kernel: {_XID}\n",
                   f"1777626301.440118 gpu-021 kernel: {_XID}\n",
                   '{\n   "dmesg": [\n      {"pri": 3,"time": 131912.440118,"msg": "' + _XID + '"}\n   ]\n}\n',
                   '{\n\t"__REALTIME_TIMESTAMP" : "1777626301440118",\n\t"_TRANSPORT" : "kernel",\n\t"MESSAGE" : "' + _XID + '"\n}\n'],
    "Slurm job record": [SACCT, SACCT_P.format(state="TIMEOUT", end="2026-05-01T09:05:11"), SCONTROL, SACCT_JSON,
                         SCONTROL_JSON],
    "Kubernetes objects": [PODS, EVENTS, EVENTS_YAML, POD, DESCRIBED_POD],
    "Prometheus metrics": [METRICS],
    "gdb": [GDB.format(function="c10d::Work::wait"), CUDA_GDB],
}  # fmt: skip
