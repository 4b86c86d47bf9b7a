"""Texts that people write around an error: what is asked for help is answered, another program's log is not."""

import pytest

from tests.engine.test_engine import triage
from tests.logs import NO_FAILURE
from torchtriage.engine import Engine

FORUM = [
    "Hello all,",
    "we are running the recipe on our own cluster and it stops after a while.",
    "The first hours are fine and then everything is gone without a word.",
    "I looked at the room that is left and it seems to be fine as far as I can tell.",
    "My colleague suggested that the mount could be the problem here.",
    "After I restarted the machine the same thing happened once again.",
    "We use the standard settings and did not change a thing at all.",
    "This is the only message that I can find:",
    "{}",
    "What can I do about that?",
    "Thank you very much for any help.",
]
CHAT = [
    "anna  10:02", "morning, my job died again tonight", "same thing as on Tuesday", "ben  10:03",
    "what does it say at the end?", "anna  10:04", "{}", "ben  10:04", "hm, is the other one up?", "anna  10:05",
    "looks like it, I can log in at least", "thx!!",
]  # fmt: skip
FORM = [
    "### Describe the bug", "", "When I launch it with four processes it dies on start.", "", "### To Reproduce", "",
    "1. Clone the repository", "2. Install the requirements", "3. Launch it as in the docs", "", "### Expected behavior",
    "", "It should start.", "", "```", "{}", "```", "", "### CollectedFacts", "- OS: Ubuntu 22.04", "- Installed: yes",
]  # fmt: skip
MAIL = [
    "From: tom@example.org", "Subject: job gone", "", "Dear colleagues,", "",
    "one of the jobs of our group was gone this morning.", "", "> {}", "",
    "Could you please help me find out what that is? We were told", "that the project has room for it, and as far as",
    "we can see not even half of it is in use. The other", "groups do not have this at all, at least I heard nothing.",
    "", "Kind regards", "Tom",
]  # fmt: skip
CHINESE = [
    "大家好，我在服务器上跑的时候遇到一个问题。", "单机单卡是可以跑起来的，没有任何问题。", "但是换成两台机器之后就一直报错。",
    "我检查过很多次路径，都没有发现问题。", "网上的办法也都试过了，没有用。", "请问有没有人遇到过同样的情况？",
    "报错信息如下：", "{}", "麻烦各位大佬帮忙看看，谢谢！",
]  # fmt: skip


@pytest.mark.parametrize("post", [FORUM, CHAT, FORM, MAIL, CHINESE], ids=["forum", "chat", "form", "mail", "chinese"])
@pytest.mark.parametrize(
    ("error", "entry"),
    [
        ("OSError: [Errno 28] No space left on device", "storage.disk-full"),
        ("PermissionError: [Errno 13] Permission denied: '/mnt/share/out/last.bin'", "storage.permission"),
        ("OSError: [Errno 98] Address already in use", "network.address-in-use"),
        ("KeyError: 'labels'", "usage.python-error"),
    ],
)
def test_an_error_in_the_midst_of_a_question_is_explained(
    engine: Engine, post: list[str], error: str, entry: str
) -> None:
    root = triage(engine, [line.format(error) for line in post]).root_cause
    assert root is not None
    assert root.entry == entry
    assert error in root.evidence[0].text


def test_a_question_without_an_error_is_inconclusive(engine: Engine) -> None:
    question = ["How can I make my training faster?", "I use DDP with 8 workers.", "Thanks for any help!"]
    assert triage(engine, question).outcome == "inconclusive"


@pytest.mark.parametrize("word", ["flask web app", "Discord bot for my server", "scraper", "网站"])
def test_a_question_about_something_else_gets_no_cause(engine: Engine, word: str) -> None:
    post = [line.format("OSError: [Errno 28] No space left on device") for line in FORUM]
    root = triage(engine, [f"I have a {word}.", *post]).root_cause
    assert root is not None
    assert root.entry is None


def test_a_log_of_as_many_lines_gets_no_cause(engine: Engine) -> None:
    log = [f"2026-05-01 09:00:{second:02} order {second} is packed" for second in range(12)]
    root = triage(engine, log, "OSError: [Errno 28] No space left on device").root_cause
    assert root is not None
    assert root.entry is None


def test_a_traceback_needs_no_words_of_training_around_it(engine: Engine) -> None:
    frames = [f'  File "/home/u/work/{name}.py", line 7, in {name}\n    return go(x)' for name in "abcdefgh"]
    root = triage(
        engine, "Traceback (most recent call last):", frames, "PermissionError: [Errno 13] Permission denied: '/mnt/a'"
    ).root_cause
    assert root is not None
    assert root.entry == "storage.permission"


@pytest.mark.parametrize(
    "words",
    [
        "my training hangs at init_process_group, no error at all",
        "DDP training freezes after a few hundred iterations, all gpus at 100%",
        "everything gets stuck at dist.barrier() when I use 2 nodes",
        "程序在 init_process_group 卡住了，没有任何输出，请问怎么解决？",
    ],
)
def test_a_hang_reported_in_words_is_possible_at_most(engine: Engine, words: str) -> None:
    root = triage(engine, words).root_cause
    assert root is not None
    assert (root.entry, root.confidence) == ("perf.hang", "possible")


@pytest.mark.parametrize(
    "words",
    [
        "my loss is stuck at 0.69",
        "INFO watchdog: the job is not stuck",
        "These settings may cause the job to hang when the ranks differ.",
    ],
)
def test_what_only_sounds_like_a_hang_is_not_one(engine: Engine, words: str) -> None:
    assert triage(engine, words).outcome in NO_FAILURE


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        ("TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.", "slurm.oom"),
        ("TERM_RUNLIMIT: job killed after reaching LSF run time limit.", "slurm.time-limit"),
        ("=>> PBS: job killed: walltime 3614 exceeded limit 3600", "slurm.time-limit"),
    ],
)
def test_what_a_batch_system_says_of_its_own_job_counts_whatever_it_ran(engine: Engine, line: str, entry: str) -> None:
    report = [f"Resource usage {number}: some value of the job" for number in range(60)]
    root = triage(engine, [*report, line, *report[:20]]).root_cause
    assert root is not None
    assert root.entry == entry


def _pod(name: str, limit: str, state: str, event: str) -> list[str]:
    return [
        f"Name:             {name}", "Namespace:        work", "Priority:         0", "Service Account:  default",
        "Status:           Running", "IP:               10.1.2.3", "Containers:", "  main:",
        "    Container ID:  containerd://1f2e", "    Image:         registry.example.com/app:1.9", "    State:          Waiting",
        *state.split("\n"), "    Restart Count:  4", "    Limits:", f"      {limit}", "    CollectedFacts:    <none>",
        "Conditions:", "  Type              Status", "  PodScheduled      False", "Volumes:", "  data:",
        "    Type:       PersistentVolumeClaim (a reference to a PersistentVolumeClaim)", "QoS Class:        Burstable", "Events:",
        "  Type     Reason            Age   From               Message", event,
    ]  # fmt: skip


_KILLED = "    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137"
_BACK_OFF = "  Warning  BackOff           2m    kubelet            Back-off restarting failed container"
_PENDING = (
    "  Warning  FailedScheduling  35s   default-scheduler  0/12 nodes are available: 12 Insufficient nvidia.com/gpu."
)


@pytest.mark.parametrize(
    ("log", "entry"),
    [
        (_pod("worker-0", "nvidia.com/gpu:  8", _KILLED, _BACK_OFF), "k8s.oom-killed"),
        (_pod("llm-train-0", "memory:  64Gi", _KILLED, _BACK_OFF), "k8s.oom-killed"),
        (_pod("worker-0", "nvidia.com/gpu:  8", "", _PENDING), "k8s.unschedulable"),
        (
            ["$ docker build -t mine .", "Sending build context to Docker daemon  3.1kB", "Step 1/3 : FROM ubuntu:22.04",
             "Step 2/3 : COPY . /app", 'Step 3/3 : CMD ["bash"]', "Successfully built 1f2e3d", "Successfully tagged mine:latest",
             "$ docker run --gpus all mine",
             'docker: Error response from daemon: OCI runtime create failed: exec: "go.sh": executable file not found in $PATH'],
            "container.runtime",
        ),
        (_pod("basket-api-6d5f8", "memory:  1Gi", _KILLED, _BACK_OFF), None),
    ],
    ids=["killed, with GPUs", "killed, a training", "pending", "docker", "a shop"],
)  # fmt: skip
def test_what_is_reported_of_a_pod_or_container_with_gpus_is_answered(
    engine: Engine, log: list[str], entry: str | None
) -> None:
    root = triage(engine, *log).root_cause
    assert (root.entry if root else None) == entry
