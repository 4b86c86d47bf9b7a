"""Whether a line is of this field or of another program, and whether a launch begins with it."""

from __future__ import annotations

import re

from torchtriage.facts.patterns import Sign

# Literals of which the line that begins a launch holds one.
BEGIN_WORDS = ("Setting OMP_NUM_THREADS", "nohup: ignoring", "Script started on", "[runner.py:", "[launch.py:")
_BEGIN = re.compile(
    r"Setting OMP_NUM_THREADS environment variable for each process|nohup: ignoring input|^Script started on "
    r"|\[runner\.py:\d+:main\] cmd = |\[launch\.py:\d+:main\] WORLD INFO DICT"
)
# What only those who train speak of: frameworks, devices, launchers, files and calls of a training loop.
FIELD = Sign(
    r"(?i)torch|c10d|nccl|\bgloo\b|\brccl|\bkfd\b|amdgpu: failed to \w+ process|\bhccl|ascend|\bnpu|\bxla\b|\btpu"
    r"|deepspeed|megatron|transformers|hugging ?face|diffusers|lightning|accelerate\b|horovod|mmcv|mmengine|mmdet|detectron|fairseq|tokenizers?\b"
    r"|bitsandbytes|flash[-_]attn|xformers|unsloth|mamba[-_]ssm|causal[-_]conv1d|\btriton\b|\bvllm|sglang|\bray(?:let|::)|ray\.(?:exceptions|tune|train)|docs\.ray\.io|ray_dedup_logs|worker exit type: |paddle|tensorflow|\bjax|\bwandb\b|tensorboard"
    r"|\bfsdp|\bddp\b|torch\.distributed|rendezvous|all_?reduce|world[_ ]size|(?:local|global|data|pipeline)[_-]rank|^\[?rank ?:?\d|dataloader|site-packages/datasets/"
    r"|numpy[/\\.]_?core\b|compiled using NumPy|fine-?tun|checkpoint(?:s/|ing model|_)|state_dict|cpp_extension|building extension|global_step|[a-z0-9](?:Trainer|Model|Tokenizer|ForCausalLM|ArgumentParser)\b|\bpeft\b|\btrl\b|模型|训练|\.(?:pth?|ckpt|safetensors)\b"
    r"|\b(?:POST|GET) /(?:update_weights\w*|update_named_param\w*|init_(?:weights_update_group|communicator)|generate|v1/(?:chat/)?completions|reset_prefix_cache|flush_cache|health_generate|collective_rpc) "
    r"|\bmodelscope\b|\bswift (?:sft|rlhf|pt)\b|\bnproc_per_node|\bswanlab\b|\bq?lora\b|\bqwen|\bllama|\bPIL[/\\.]|\bcv2\b|\bh5py\b|\bdecord\b|webdataset|\blmdb\b|librosa|imagenet"
    r"|pytorchjob|\btrainjob|\bmpijob|\bvcjob|\bvolcano\b|\bkueue\b|\btony(?:client|session|application)|\[dmlc\]|/etc/mpi/|\bmlx5|infiniband|pt_main_thread|pt_data_worker|-l(?:cuda|curand|aio|c10)|\((?:python[\d.]*|pt_\w+)\)|task=python|\bhydra[./]|omegaconf"
)
# Words of devices, of which programs that train nothing speak as well: a log with a form of such a program (ON_GPUS) is not
# ours for them.
DEVICES = Sign(r"(?i)(?:\b|lib)cuda|\bcudnn|cublas|\bgpus?\b|_gpu|gpu_|nvidia|nvrm|\bxid\b|rocm|\bhip\w")
# What stands around training, and around much else: batch systems, scripts by their names. It outweighs no FOREIGN form.
AROUND = Sign(r"slurm|srun:|\bsbatch\b|train\w*\.py")
# The words of a training loop, of which other programs too have one: trains, stop losses, the epochs of a chain.
HINTS = (
    Sign(r"(?i)\bloss(?:es)?\b|\w_loss\b|损失"),
    Sign(r"(?i)\bepochs?\b"),
    Sign(r"(?i)\btrain(?:ing|er|ed)?\b"),
    Sign(r"(?i)\b(?:step|iter|iteration)s?\b['\"]?[ :=\[/]{0,4}\d"),
    Sign(r"(?i)\bdatasets?\b|\bdistributed\b"),
)
# Programs that train nothing though their lines speak of CUDA: renderers, password crackers, miners, games, CMake.
ON_GPUS = Sign(
    r"\bBlender \d|docs\.blender\.org|Cycles GPU rendering|\bin CUDA queue \w|\bin cuMemAlloc\(&|^Fra:\d+ Mem:|\bOptiX\b|^Cycles: CUDA error|[/\\.]blender[/\\]\d|\bOctane(?:Render)?\b|\bRedshift \d"
    r"|^hashcat \(|^\* Device #\d+: |^(?:clBuildProgram|cuModuleLoadDataEx|cuLinkAddData)\(\): |\bFAHC?ore|\bFS\d\d:0x[0-9a-f]{2}:|:WU\d\d:FS\d\d:"
    r"|\bHashrate \d|H/s, epoch \d|\b(?:ethminer|NBMiner|lolMiner|PhoenixMiner|T-Rex NVIDIA|xmrig|CUDA-Err|DAG (?:generat|creat|build)\w*|GMiner|bminer)\b|\b(?:Accepted|accepted) \d+/\d+ .{0,80}\d [MG]H/s"
    r"|\bLog(?:RHI|D3D12RHI|VulkanRHI|Vulkan|Init): |^(?:CMake (?:Error|Warning) at |-- (?:Found|Performing Test|Looking for|Detecting|Check for) )(?!.*[Tt]orch)|\bUnityPlayer\b|^GameOverlay: |\bvk[A-Z]\w+ failed|\bVK_ERROR_\w+|gpu_process_host\.cc|GPU process isn't usable|\bPlex Media Server\b|\bJellyfin\b|\bnvEnc\w+|\bNVENC Error|\bh(?:264|evc)_nvenc\b"
    r"|\bthread (?:dxvk-\w+|VKRenderThread|\S{1,40}:cs\d+) pid \d|(?i:\bopenmm\b|openmm(?:exception|cuda|md)|\bacemd\d?\b|\bcryosparc|\brelion_\w)|^\W*SWAN : FATAL : |\bMATLAB (?:Root|Version|Architecture)\b|^\s*Crash Decoding +: |cudaCustomAllocator|\bcolmap (?:patch|feature|mapper|stereo|exhaustive)|\bcolmap::|\bPatchMatch(?:::|Stereo|Options)|\bgpu_mat\.h:\d|\bcudacc\.cc:\d|\bopencv_cudev\b|\bpmemd\.cuda|launching kernel k[A-Z]|^darknet: |\d BF(?:LOPs)?$|^Region \d+ Avg IOU: | avg loss, [\d.]+ rate, "
    r"|^ERROR: LoadError: |[/\\]\.julia[/\\]packages|^\s+@ (?:\w+ )?\S+\.jl:\d|\bCuArray\{|^Effective GPU memory usage: |\bggml_\w|\bllama_(?:model_load|new_context|init_from)|\bllm_load_\w|ms per token, +[\d.]+ tokens per second"
    r"|[/\\]kokkos(?:-\d|[/\\])|\bKokkos::|\bCmiAbort|\bcuda-hybrid-api\.cu|\bCUDA mining\b|\blotus-(?:worker|miner)\b|\bbellperson\b|^#+ OPENCL ERROR #|^CUDA error (?:'[^'\n]{1,80}' )?in func '\S|\bTREX: Can't |^Traceback functionality not available|instance of 'CUDA::error'|^cu(?:Event|Stream|Mem|Module|Ctx)\w+\(\): |\bmallocMC\b|\bpicongpu\b"
    r"|\bai\.rapids\.cudf\b|\bspark\.rapids\b|^CUDA error !!!!! <|^at CUDA call error code: # \d|\bamrex::|\((?:nnet\w*-|cuda-)[\w-]{1,40}\[\d+\.\d"
)
# Programs whose logs are not this field's, by the forms that only they print. Several signs: where RE2's automaton of one
# outgrows its memory, each search says so on stderr and takes many times as long.
FOREIGN = (
    ON_GPUS,
    # Stacks and last words of other languages.
    Sign(
        r"^\s+at (?!org\.apache\.hadoop|org\.apache\.spark|java\.util\.concurrent\.|java\.lang\.Thread\.)[\w$.<>/]+\((?:[\w.]+(?::\d+)?|Native Method)\)|^\s+at [\w.<>`]+\(.{0,200}\) in .{1,200}:line \d+|\borg\.apache\.(?!spark|hadoop\.util\.Shell|hadoop\.yarn)"
        r"|^goroutine \d+ \[|\bpanic: runtime error|^thread '[^']{1,80}' panicked at|^Unhandled exception\. System\.|^\s+at .{1,200}\(node:|\(unhandled promise\)"
        r"|^\s+at (?:[^()\n]{1,120} \()?[^\s()]{1,200}\.[cm]?[jt]sx?:\d+:\d+\)?(?: \{)?$|^Uncaught \(?\w*Error\b|^Require stack:$|[/\\]node_modules[/\\]"
        r"|JavaScript heap out of memory|\bnode::\w+\(|^Subject: Cron <|\(Cron Daemon\)|^forrtl: |^At line \d+ of file \S+\.[fF]\d*|^Execution halted$|^Error in library\(|^Current file: +\S+\.[fF]\d\d|\boctave-(?:cli|gui)\b|^Program received signal SIG[A-Z]+: |^rank \d+ in job \d+ |^This file was compiled: -"
    ),
    # Package managers, builds in which no line speaks of this field, containers' builds, other people's automation.
    Sign(
        r"\bnpm (?:ERR!|error|info|verb)|^\d+ (?:verbose|silly|info) |^error\[E\d{4}\]|^\s+--> [\w/.-]+\.rs:\d+|\[maven|\bgradle\b"
        r"|^error: could not compile `|^ +Compiling [\w-]+ v\d|^\[ {0,2}\d+%\] (?:Building|Linking|Generating|Built target) |^g?make(?:\[\d+\])?: \*\*\* "
        r"|^-- (?:The C(?:XX)? compiler identification|Configuring incomplete)|^c\+\+: fatal error: Killed signal|^(?:/\S*/)?ld: "
        r"|^Step \d+/\d+ : |^#\d+ (?:\[|\d+\.\d+ |DONE|CACHED|ERROR)|^(?:Ign|Err|Get|Hit):\d+ https?://|^[EW]: (?:Failed to fetch|Unable to locate|Some index)"
        r"|\bterraform\b|Terraform|\.tf line \d+, in |^(?:PLAY|TASK) \[|^(?:fatal|failed): \[[\w.-]+\]: (?:UNREACHABLE|FAILED)! => |##\[(?:group|error|endgroup)\]|^section_(?:start|end):\d|^Started by user |^Build step '"
        r"|^=+ (?:test session starts|short test summary info|FAILURES|ERRORS|\d+ (?:failed|passed)\b.{0,80}) =+$|^(?:FAILED|ERROR) \S+\.py::|^Ran \d+ tests? in \d|\bN E X T F L O W\b|^Error executing process >|^\s*Process `[^`]{1,200}` terminated |: +\d+ Killed +\S*\b(?:bwa|samtools|java|node|make|Rscript|colmap|bowtie2?|minimap2|hifiasm|STAR|gatk)\b|^Error in rule |\bsnakemake\b|\bnextflow\b"
        r"|^(?:error: |fatal: )(?:unable to access '|could not fetch|RPC failed|early EOF|Could not read from remote)|^fetch-pack: |^remote: \w+ing objects|^rsync(?: error)?: |^curl: \(\d+\)"
    ),
    # Servers: access lines, databases, brokers, the frameworks behind web pages and timed jobs.
    Sign(
        r"^\d+\.\d+\.\d+\.\d+ - - \[|\"(?:GET|POST|PUT|HEAD|DELETE|PATCH|OPTIONS) \S+ HTTP/\d|\bnginx\b|\b(?:neo4j|elasticsearch|cassandra)\b|^(?:LOG|STATEMENT|DETAIL|HINT):  "
        r"|\[\d+\](?::? \S+)?[ =](?:LOG|ERROR|FATAL|PANIC|STATEMENT|DETAIL|HINT):  \S|^\d+:[MSCX] \d\d \w{3} \d{4} |\"c\":\"[A-Z]+\", *\"id\":\d+,"
        r"|(?:site|dist)-packages[/\\](?:flask|django|werkzeug|starlette|fastapi|uvicorn|gunicorn|tornado|airflow|celery|prefect|scrapy|twisted|sqlalchemy"
        r"|discord|telegram|pygame|kivy|selenium|psycopg2?|pymysql|MySQLdb|pymongo|kombu|odoo|ansible|salt|streamlit|mitmproxy|certbot|bottle|sanic"
        r"|quart|pyramid|wagtail|stripe|paho|pyodbc|mkdocs|sphinx|openpyxl|apt|cloudinit|ufw|softwareproperties|apport|billiard|dask|distributed|tweepy|praw|pika|telethon|pyrogram|aiogram|slack_bolt|ccxt|dbt|superset|PyQt\d|PySide\d|pyglet|wx|apscheduler|tldextract|bs4|feedparser|playwright|yt_dlp|youtube_dl)[/\\]|\b(?:manage|(?:passenger_)?wsgi|asgi)\.py\", line \d"
        r"|homeassistant[./\]]|\bcustom_components[./]|\[Server thread/[A-Z]+\]: |\bActiveRecord::|^Started (?:GET|POST|PUT|PATCH|DELETE) \"/|\b(?:mysqldump|pg_dump|mysqladmin): |^psql: |\(@INC contains: |^BEGIN failed--compilation aborted|\bpanic: listen tcp|\bairflow\b|\bcelery@|\d: [A-Z]+/(?:MainProcess|ForkPoolWorker-\d+)\] |\bbilliard\.|'ForkPoolWorker-\d+' pid:\d|\[CRITICAL\] WORKER TIMEOUT \(pid:|\btelegram\.(?:ext|vendor|error|request|bot)\b|\btelethon\.|\bdiscord\.(?:client|gateway|ext|errors|http)\b|^INFO: +Will watch for changes in these directories|^ \* Serving Flask app |\bscrapy\.|^(?:START|END|REPORT) RequestId: |/var/task/"
    ),
    # The kernel, the init and the doors of machines that serve something else.
    Sign(
        r"^(?:error: |fatal: )?(?:Failed password for |Timeout before authentication |Accepted (?:publickey|password) for |Invalid user \S+ from )"
        r"|\b(?:firefox|chrom\w+|gnome-[\w-]+|Xorg|plasmashell|thunderbird|soffice\.bin)\[\d+\]:? (?:segfault|trap)|systemd\[1\]: (?!nvidia|slurm|kubelet)\S+\.service: |\bsystem-(?:postgresql|mysql|mariadb|redis|nginx|apache2|docker|php\d?)\b[\w@\\.-]*\.slice\b|^(?:Main process exited, code=|Scheduled restart job, )|/libvirt/|\bplasmashell\b|\bINFO: task (?:objcopy|cc1\w{0,4}|rsync|mysqld|mongod|postgres|updatedb|smbd|qemu-[^:\s]{1,20}):\d+ blocked|\b(?:qemu|kvm)[\w:.-]{0,40} invoked oom-killer|(?:Killed process \d+,? \(|task=)(?!python|pt_|ray|torch|train|deepspeed|nvidia|accelerate|java)\w"
    ),
    # Containers of services, storage boxes, video tools.
    Sign(
        r"\[MY-\d{6}\]|\b(?:Liveness|Startup|Readiness) probe failed: (?!success)|^(?:web|www|api|frontend|backend|nginx|redis|mysql|mariadb|postgres|mongo|kafka|rabbitmq|ingress|logging|kibana|elasticsearch|keycloak|wordpress|jenkins|gitlab)[\w-]* +\d+/\d+ "
        r"|\b(?:pod/|in pod )(?:prometheus|grafana|alertmanager|loki|coredns|redis|mysql|mariadb|postgres\w*|nginx|ingress|kafka|rabbitmq|elasticsearch|jenkins|argocd|cert-manager|gitlab|wordpress)-"
        r"|port is already allocated|Cannot (?:start|create) service |^(?:Creating|Removing) (?:network|volume) \""
        r"|repository does not exist or may require|docker-compose|docker compose (?:up|build)|\b(?:synostorage|synoscgi|smbd|nmbd|qnapd|zfs-zed|zed)(?:\[\d+\])?: |comm (?:smbd|nfsd|mysqld|postgres)\b|DiskStation|::\[(?:filesystem|downloader|newsunpack|postproc|nzb\w+|assembler|directunpacker|bpsmeter):\d+\]|\bntfs_\w+: |^NTFS is either |^Creating archive at \"|\bborg\.(?:archiver|remote|repository|helpers)\b|^Remote: (?:client_loop|ssh|Read from remote host|Connection to)\b|[/\\]borg[/\\]\w+\.py\b|\belastic-(?:operator|system)\b|\brestic\b|\bduplicity\b"
        r"|^ffmpeg version |^ {2}(?:built with gcc|configuration: --|lib(?:av|sw|post)\w+ +\d+\.)|^\[(?:mov,mp4|matroska|h264|hevc|aac|mp3|rtsp|libx264|image2)[\w,]* @ 0x"
    ),
    # Simulations and robots.
    Sign(
        r"\] process has died \[pid \d+, exit code|/opt/ros/|\broslaunch\b|\bgzserver\b|OpenFOAM|FOAM FATAL |Foam::|running on +\d+ total cores|\b(?:EDDDAV|ZBRENT|POTCAR|WAVECAR|OUTCAR)\b|gmx mdrun|\bLAMMPS\b|\bGROMACS\b|\bvasp[._ ]"
        r"|\bProgram PWSCF\b|\bQuantum ESPRESSO\b|\bpw\.x\b|\bCP2K[|] |\bqs_scf\.F:\d|\bcp2k\.p\w+|\bNAMD \d|\bCharm\+\+>|\bwrf\.exe\b|\babaqus\b|\bpmemd\b|\bNWChem\b|^\[M::\w+\] |^\[vg \w+\] |^\s*mo_[a-z_]{4,60}::?[A-Za-z]\w{3,60}|\bPlugin error from \w+:|\S\.(?:fastq|fq\.gz|vcf\.gz|g?bam|cram|gfa)\b|\bsamtools \w+: |Entering Gaussian System|\blmp_\w+|\bgmx_mpi\b"
    ),
)


def begins(text: str) -> bool:
    """-> whether a launch begins with this line."""
    return bool(_BEGIN.search(text[:400]))
