"""Where it failed, if the traceback itself does not end there; logs of real runs but for Ray's."""

from pathlib import Path

import pytest

from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes, open_path

LOGS = Path(__file__).parent / "logs"
SITE = "/opt/venv/lib/python3.10/site-packages"
RAY = f"""step 90/611 loss 0.5
Traceback (most recent call last):
  File "/job/main_ppo.py", line 74, in <module>
    ray.get(runner.run.remote(config))
  File "{SITE}/ray/_private/worker.py", line 958, in get
    raise value.as_instanceof_cause()
ray.exceptions.RayTaskError(IndexError): ray::TaskRunner.run() (pid=1470864, ip=10.0.4.7, actor_id=dcb8f3, repr=<main_ppo.TaskRunner object at 0x7f>)
  File "/job/main_ppo.py", line 245, in run
    trainer.fit()
ray.exceptions.RayTaskError(IndexError): ray::WorkerDict.generate() (pid=1482907, ip=10.0.4.7, actor_id=a523c5)
  File "job/workers/rollout.py", line 931, in rollout
    request.add_user_message(turns)
  File "job/workers/schemas.py", line 394, in add_user_message
    content = [self.split_lines[user_turns]]
IndexError: list index out of range
"""


def facts(engine: Engine, text: str | None = None, name: str = "") -> dict[str, str | int | float]:
    run = open_path(LOGS / f"{name}.txt") if text is None else from_bytes(text.encode())
    return {fact.name: fact.value for fact in engine.triage(run).facts}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("dyn2", {"where": "/job/dyn2.py:4", "code": "torch._dynamo.graph_break()", "caller": "/job/dyn2.py:7"}),
        ("anomaly", {"where": "/job/anomaly.py:8", "forward_where": "/job/anomaly.py:3", "forward_function": "gate"}),
        ("fault", {"where": "/job/fault.py:4", "function": "decode", "callee": "string_at"}),
    ],
)
def test_frames_that_are_next_to_the_traceback(engine: Engine, name: str, expected: dict[str, str]) -> None:
    found = facts(engine, name=name)
    assert {key: found.get(key) for key in expected} == expected


def test_the_frames_of_the_worker_whose_exception_ray_carries(engine: Engine) -> None:
    found = facts(engine, RAY)
    assert (found["where"], found["exception"]) == ("job/workers/schemas.py:394", "IndexError")
    assert found["caller"] == "job/workers/rollout.py:931"


def test_of_a_very_deep_stack_the_users_outer_frames_are_known(engine: Engine) -> None:
    library = "".join(
        f'  File "{SITE}/torch/nn/modules/module.py", line {at}, in _call_impl\n    return forward_call(*args)\n'
        for at in range(90)
    )
    own = '  File "/job/train.py", line 7, in train_step\n    return model(batch["pixels"])\n'
    found = facts(engine, f"step 1 loss 0.5\nTraceback (most recent call last):\n{own}{library}RuntimeError: bad\n")
    assert (found["where"], found["code"]) == ("/job/train.py:7", 'return model(batch["pixels"])')


def test_the_call_that_led_to_a_librarys_exception_is_that_of_the_next_one_in_the_chain(engine: Engine) -> None:
    found = facts(
        engine,
        f"""step 1 loss 0.5
Traceback (most recent call last):
  File "/job/run.py", line 222, in <module>
    trainer.fit(model)
  File "{SITE}/torch/_utils.py", line 425, in reraise
    raise self.exc_type(msg)
KeyError: Caught KeyError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "{SITE}/pandas/core/indexes/base.py", line 3621, in get_loc
    return self._engine.get_loc(casted_key)
KeyError: 'input'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "{SITE}/torch/utils/data/_utils/worker.py", line 287, in _worker_loop
    data = fetcher.fetch(index)
  File "/job/data.py", line 262, in convert
    rows = batch['input']
  File "{SITE}/pandas/core/indexes/base.py", line 3623, in get_loc
    raise KeyError(key) from err
KeyError: 'input'
""",
    )
    assert (found["where"], found["code"]) == ("/job/data.py:262", "rows = batch['input']")


def test_where_no_frame_is_the_users_the_installed_package_is_named_rather_than_pythons_own_module(
    engine: Engine,
) -> None:
    text = f"""step 1 loss 0.5
  File "{SITE}/triton/runtime/build.py", line 50, in _build
    ret = subprocess.check_call(cc_cmd)
  File "/usr/lib/python3.11/subprocess.py", line 413, in check_call
    raise CalledProcessError(retcode, cmd)
torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:
CalledProcessError: Command '['/usr/bin/gcc', 'main.c', '-lcuda']' returned non-zero exit status 1.
"""
    found = facts(engine, text)
    assert (found["library"], found["library_frame"]) == ("triton", "triton/runtime/build.py:50")


def test_where_no_frame_is_the_users_the_library_that_called_the_failing_one_is_named(engine: Engine) -> None:
    text = f"""Traceback (most recent call last):
  File "{SITE}/accelerate/utils/modeling.py", line 1391, in load_state_dict
    return torch.load(checkpoint_file, map_location=torch.device("cpu"))
  File "{SITE}/torch/serialization.py", line 998, in load
    with _open_zipfile_reader(opened_file) as opened_zipfile:
  File "{SITE}/torch/serialization.py", line 283, in __init__
    super().__init__(torch._C.PyTorchFileReader(name_or_buffer))
RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory
"""
    found = facts(engine, text)
    assert (found["library_frame"], found["library_function"]) == ("torch/serialization.py:283", "__init__")
    assert found["library_caller"] == "accelerate/utils/modeling.py:1391"
    assert found["library_caller_function"] == "load_state_dict"


def test_a_signal_handler_is_not_where_the_failure_began(engine: Engine) -> None:
    text = f"""Traceback (most recent call last):
  File "/env/bin/torchrun", line 8, in <module>
    sys.exit(main())
  File "{SITE}/torch/distributed/elastic/agent/server/api.py", line 869, in _invoke_run
    time.sleep(monitor_interval)
  File "{SITE}/torch/distributed/elastic/multiprocessing/api.py", line 79, in _terminate_process_handler
    raise SignalException(f"Process {{os.getpid()}} got signal: {{sigval}}", sigval=sigval)
torch.distributed.elastic.multiprocessing.api.SignalException: Process 3691338 got signal: 1
"""
    found = facts(engine, text)
    assert found["library"] == "torch"
    assert not {"where", "library_frame", "library_caller"} & found.keys()


def test_a_cell_of_a_notebook_is_a_place_and_no_file(engine: Engine) -> None:
    found = facts(
        engine,
        """step 1 loss 0.5
---------------------------------------------------------------------------
ValueError                                Traceback (most recent call last)
Cell In[4], line 2
      1 net = build()
----> 2 fit(net)

File ~/seg/train.py:31, in fit(net)
     30 def fit(net):
---> 31     raise ValueError("bad")

ValueError: bad
""",
    )
    assert found["where"] == "~/seg/train.py:31"
    assert found["caller"] == "<cell 4>:2"
    assert found["file"] == "~/seg/train.py"
    assert "script" not in found


def test_windows_own_modules_are_not_the_users(engine: Engine) -> None:
    found = facts(
        engine,
        r"""step 1 loss 0.5
Traceback (most recent call last):
  File "C:\work\seg\train.py", line 31, in <module>
    fit(net)
  File "C:\work\seg\train.py", line 12, in fit
    pool.map(load, names)
  File "C:\Users\ada\AppData\Local\Programs\Python\Python311\Lib\multiprocessing\pool.py", line 367, in map
    return self._map_async(func, iterable, mapstar, chunksize).get()
ValueError: bad
""",
    )
    assert found["where"] == "work/seg/train.py:12"
    found = facts(
        engine,
        r"""Traceback (most recent call last):
  File "F:\envs\llama\Scripts\torchrun.exe\__main__.py", line 7, in <module>
  File "F:\envs\llama\Lib\site-packages\torch\distributed\run.py", line 919, in main
    run(args)
RuntimeError: bad
""",
    )
    assert "where" not in found


@pytest.mark.parametrize(
    ("path", "users"),
    [
        ("/home/ada/feed/torch/feed_dataset.py", True),
        ("/home/ada/feed/torch/readers/shards.py", True),
        ("/opt/venv/lib/python3.10/site-packages/feed/torch/feed_dataset.py", False),
        ("/home/ada/pytorch/torch/nn/modules/linear.py", False),
        ("/home/ada/pytorch/torch/_tensor.py", False),
        ("/home/ada/pytorch/torch/functional.py", False),
    ],
)
def test_a_project_may_have_a_folder_named_torch(engine: Engine, path: str, users: bool) -> None:
    found = facts(
        engine,
        f"""step 1 loss 0.5
Traceback (most recent call last):
  File "/home/ada/feed/train.py", line 31, in <module>
    fit(net)
  File "{path}", line 247, in __iter__
    assert self.block is not None
AssertionError
""",
    )
    assert str(found["where"]).endswith(":247") == users
