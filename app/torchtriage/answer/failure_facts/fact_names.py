"""The names of all facts, which are also the slots of cases, with their meanings. docs/facts.md is generated from
them."""

from __future__ import annotations

from typing import NamedTuple

from torchtriage.answer.failure_facts.lookup_tables import TABLES
from torchtriage.domain.vocabulary import Vocabulary
from torchtriage.facts.line_forms import fact_names
from torchtriage.facts.versions import packages


class Meaning(NamedTuple):
    """The meaning of a fact, its unit and an example value."""

    what: str
    unit: str | None
    example: str


# Facts about the failure and its run, grouped as in the registry. The vocabulary names the facts of single lines.
ENGINE_FACTS: dict[str, Meaning] = {
    # frames
    "where": Meaning("position of the user's innermost frame", None, "train/metrics.py:88"),
    "file": Meaning("file of that frame", None, "/job/train/metrics.py"),
    "line_number": Meaning("line number of that frame", None, "88"),
    "function": Meaning("function of that frame", None, "compute_f1"),
    "code": Meaning("source line of that frame", None, "x = batch['ids']"),
    "raise_code": Meaning("that source line, if it is a raise statement", None, "raise ValueError(message)"),
    "script": Meaning("file of the user's outermost frame", None, "/job/train.py"),
    "caller": Meaning("position of the user's frame that called `where`", None, "train.py:120"),
    "caller_code": Meaning("source line of the caller", None, "loss = step(batch)"),
    "caller_function": Meaning("function of the caller", None, "main"),
    "callee": Meaning("library function called in the user's line", None, "load_state_dict"),
    "calls": Meaning("library functions called below the user's line", None, "load → _load → persistent_load"),
    "library": Meaning("package whose code raised the exception", None, "torch"),
    "library_package": Meaning("name of that package on PyPI, if pip installed it", None, "opencv-python"),
    "library_frame": Meaning(
        "position in that package where the exception was raised", None, "torch/serialization.py:1005"
    ),
    "library_file": Meaning(
        "file of that position", None, "/opt/venv/lib/python3.11/site-packages/torch/serialization.py"
    ),
    "library_code": Meaning("source line at that position", None, "result = unpickler.load()"),
    "library_function": Meaning("function at that position", None, "_load"),
    "library_caller": Meaning(
        "library frame that called it, if no frame is the user's", None, "accelerate/utils/modeling.py:1391"
    ),
    "library_caller_code": Meaning("source line of that frame", None, "return torch.load(checkpoint_file)"),
    "library_caller_function": Meaning("function of that frame", None, "load_state_dict"),
    "forward_where": Meaning(
        "position of the forward call whose backward failed, from anomaly mode", None, "model.py:272"
    ),
    "forward_code": Meaning("source line of that call", None, "y = torch.sqrt(x)"),
    "forward_function": Meaning("function that contains that call", None, "gate"),
    # library_message, if no case applies
    "raised_by": Meaning("public name of the library function that printed the message", None, "torch.optim.Muon(…)"),
    "own_check": Meaning(
        "exception type of a library's own check, unless the cause can be temporary", None, "ValueError"
    ),
    "message_values": Meaning("values in the message, with the names from the library's code", None, "p.ndim = 1"),
    # exception_message, size_arithmetic, list_differences, missing_module
    "exception": Meaning("exception type without its module", None, "KeyError"),
    "message": Meaning("first informative line of the exception message", None, "'ids'"),
    "advice": Meaning("sentence in the message that says what to do", None, "Please use FastVisionModel instead!"),
    "advice_command": Meaning("command or setting in that sentence", None, "pip install -U bitsandbytes"),
    "same_elements": Meaning(
        "number of elements, if both shapes in the message have the same number", None, "517996544"
    ),
    "relation": Meaning("arithmetic relation between two sizes in the message", None, "4608 = 3 × 1536"),
    "first_size": Meaning("first size of a shape that does not match its number of elements", None, "32"),
    "fitting_size": Meaning("first size that would match if the other sizes are correct", None, "6"),
    "given_side": Meaning("last two, equal sizes of a shape that does not match its number of elements", None, "9"),
    "fitting_side": Meaning("size that would match there if the sizes before it are correct", None, "14"),
    "turned_operand": Meaning("matrix that would fit the product if it were transposed", None, "10x512"),
    "packed_outputs": Meaning("number of outputs of a layer whose 4-bit weight is packed into one row", None, "4096"),
    "side_ratio": Meaning("ratio of image sides that explains the two sizes of a flattened feature map", None, "16/7"),
    "division": Meaning(
        "the only two numbers in the message, the larger divided by the smaller", None, "46 = 11 × 4 + 2"
    ),
    "extra_names": Meaning("items only in the first of the two lists in the message", None, "reference"),
    "lacking_names": Meaning("items only in the second list", None, "input, output"),
    "mapped_names": Meaning(
        "keys of a mapping that lacks an entry, as printed above the failure", None, "model.layers.0-12, lm_head"
    ),
    "mapped_names_line": Meaning("log line with these keys", None, "44"),
    "similar_name": Meaning("key whose spelling is close to that of the missing name", None, "model.embed_token"),
    "reported_as": Meaning(
        "exception that the user's code raised as a result", None, "ValueError: a.jsonl:912 is no JSON"
    ),
    "worker": Meaning("DataLoader worker that raised the exception", None, "3"),
    "module": Meaning("module that was not found", None, "yaml"),
    "package": Meaning("pip package that contains the module", None, "PyYAML"),
    "own_module": Meaning("module of the user's project that was not found", None, "models.blocks"),
    "own_root": Meaning("folder that contains that module, if frames show it", None, "/home/ada/llm/src"),
    "damaged_package": Meaning("installed package whose files are from different versions", None, "transformers"),
    "imported_from": Meaning("folder of the package that lacks the module or name", None, "/home/ada/torch_npu"),
    "imported_above": Meaning("parent of that folder", None, "/home/ada"),
    # computed_values, from what the case captured from the message
    "multiple_below": Meaning("largest multiple of `{divisor}` below `{dividend}`", None, "996"),
    "multiple_above": Meaning("smallest multiple of `{divisor}` above `{dividend}`", None, "1008"),
    "divisor_below": Meaning("largest divisor of `{dividend}` below `{divisor}`", None, "10"),
    "divisor_above": Meaning("smallest divisor of `{dividend}` above `{divisor}`", None, "20"),
    "difference": Meaning("absolute difference of `{have}` and `{limit}` or `{want}`", None, "293"),
    "surplus": Meaning("`{have}` minus `{want}`, if positive", None, "4"),
    "times_limit": Meaning("`{used}` divided by `{limit}`, if more than 1", None, "2.9"),
    "third_factor": Meaning("`{product}` divided by `{factor}` × `{other_factor}`", None, "8"),
    "nearest_choice": Meaning("item of `{choices}` with the spelling closest to `{written}`", None, "cosine"),
    # code_line
    "operand": Meaning("expression in the user's line that failed", None, "batch['ids']"),
    "operand_type": Meaning("type of that expression, as named in the message", None, "NoneType"),
    "possible_operands": Meaning("expressions in that line of which one failed, if several can", None, "a.scale, f(x)"),
    "possible_type": Meaning("type of the one that failed, as named in the message", None, "NoneType"),
    "other_operand": Meaning("expression on the other side of the operator", None, "self.bias"),
    "other_type": Meaning("type of the other expression", None, "str"),
    "attribute": Meaning("missing attribute", None, "shape"),
    "collection": Meaning("dict, list or other collection that was indexed or searched", None, "batch"),
    "key": Meaning("key that is not in the collection", None, "'ids'"),
    "index": Meaning("index that is out of range", None, "i + 1"),
    "condition": Meaning("condition of the failed assertion", None, "x.dim() == 4"),
    "target": Meaning("names on the left side of the unpacking", None, "image, label"),
    "source": Meaning("expression that is unpacked", None, "sample"),
    "items_of": Meaning("iterable whose items a loop unpacks", None, "train_loader"),
    "imported": Meaning("module in the import statement", None, "flash_attn"),
    "called": Meaning("call in the user's line that failed", None, "torch.load"),
    "argument": Meaning("first argument of that call", None, "args.resume"),
    "code_names": Meaning("variables in the user's line, to print above it", None, "x, self.weight"),
    "passed_name": Meaning("variable in the failing line that the caller passed", None, "logger"),
    "library_operand": Meaning("expression that failed in the library's line", None, "input"),
    "library_collection": Meaning("collection indexed in the library's line", None, "self.plans"),
    "library_index": Meaning("index used there", None, "name"),
    "library_condition": Meaning("condition of the library's assertion", None, "len(rows) > 0"),
    "library_target": Meaning("names that the library's line unpacks into", None, "rows, columns"),
    "library_source": Meaning("expression that the library's line unpacks", None, "shape"),
    # printed_values
    "printed_name": Meaning(
        "name in the message or the failing operand whose value the log printed", None, "num_classes"
    ),
    "printed_value": Meaning("printed value of that name", None, "37"),
    "printed_line": Meaning("log line with that value", None, "12"),
    "other_printed_name": Meaning("second such name", None, "labels_path"),
    "other_printed_value": Meaning("printed value of the second name", None, "/data/labels.json"),
    "other_printed_line": Meaning("log line with that value", None, "13"),
    "printed_shapes": Meaning("printed shapes of names in the failing line", None, "x [4, 96], w [128, 10]"),
    "printed_shapes_line": Meaning("last log line with these shapes", None, "40"),
    # telling_line
    "telling_line": Meaning(
        "line printed just above the exception that shows why it came", None, "Found 0 samples in /data/train"
    ),
    "telling_line_number": Meaning("number of that line in the log", None, "14"),
    # path_options
    "path_option": Meaning("option whose printed value is the path in the message", None, "--resume"),
    "path_in_code": Meaning("position of the user's line that contains the path as a literal", None, "train.py:17"),
    "folder_option": Meaning("option whose value is a parent folder of the path", None, "--data_root"),
    "folder_given": Meaning("value of that option", None, "/data/coco"),
    # python_environment
    "frameworks": Meaning("frameworks with frames in the traceback", None, "DDP, Trainer"),
    "operating_system": Meaning("Windows, if the traceback has its paths", None, "Windows"),
    "environment": Meaning("folder of the Python environment", None, "/home/u/miniconda3/envs/llm"),
    # ranks
    "rank": Meaning("rank that failed", None, "3"),
    "local_rank": Meaning("local rank of that rank", None, "3"),
    "host": Meaning("host of that rank", None, "gpu-021"),
    "time": Meaning("time of the failure", None, "2026-05-01T09:20:00"),
    "ranks": Meaning("ranks with the same failure, if there are several", None, "0-7"),
    "rank_count": Meaning("number of these ranks", "ranks", "8 ranks"),
    # rank_differences
    "by_rank": Meaning("values in the message that differ between ranks", None, "rank 0: [4, 128]; ranks 1-3: [4, 96]"),
    "printed_by_rank": Meaning(
        "values that differ between ranks in a line printed above the failure",
        None,
        "rank 2: 80; ranks 0-1,3: 96",
    ),
    "printed_by_rank_words": Meaning("words before these values", None, "samples"),
    "printed_by_rank_line": Meaning("last of these log lines", None, "14"),
    "steps_by_rank": Meaning(
        "last step of each rank, if ranks waited and their steps differ", None, "rank 2: 4; ranks 0-1,3: 5"
    ),
    # list_differences
    "added_prefix": Meaning("prefix that only the checkpoint's weight names have", None, "model."),
    "lacking_prefix": Meaning("prefix that only the model's weight names have", None, "net."),
    "cut_characters": Meaning("number of leading characters missing from the checkpoint's weight names", None, "7"),
    "cut_name": Meaning("one of these names", None, "ist.0.weight"),
    "whole_name": Meaning("full name of that weight", None, "layer_list.0.weight"),
    # shape_differences
    "mismatch_count": Meaning("number of weights whose shapes differ between checkpoint and model", None, "12"),
    "mismatch_kinds": Meaning("number of different size ratios among them", None, "2"),
    "mismatch_examples": Meaning(
        "one weight per ratio, with both shapes", None, "head.weight [1000, 768] against [21, 768]"
    ),
    "mismatch_axis": Meaning("only dimension in which the first of them differs, counted from 0", None, "0"),
    "saved_size": Meaning("size of that dimension in the checkpoint", None, "8"),
    "current_size": Meaning("size of that dimension in the model", None, "16"),
    # run
    "launcher": Meaning("launcher that started the processes", None, "torchrun"),
    "world_size": Meaning("number of ranks in the run", "ranks", "64 ranks"),
    "phase": Meaning("what the run was doing when it failed", None, "save"),
    "step": Meaning("last training step", None, "1200"),
    "exit_code": Meaning("exit status of the process that failed", None, "-9"),
    "checkpoint": Meaning("newest complete checkpoint", None, "/ckpt/step_1000.pt"),
    "checkpoint_step": Meaning("step of that checkpoint", None, "1000"),
    # ranks, run
    "failed_ranks": Meaning("ranks that failed on their own", None, "2-3"),
    "waiting_ranks": Meaning("ranks that reported a lost or missing peer", None, "0-1,4-7"),
    "missing_ranks": Meaning("ranks that the others waited for", None, "5"),
    "behind_ranks": Meaning("ranks that waited in an earlier collective than the rest of their group", None, "11"),
    "behind_call": Meaning("collective in which they waited", None, "_ALLGATHER_BASE"),
    "behind_sequence": Meaning("sequence number of that collective", None, "48812"),
    "ahead_ranks": Meaning("ranks that waited in the latest collective", None, "3"),
    "ahead_call": Meaning("collective in which they waited", None, "_REDUCE_SCATTER_BASE"),
    "ahead_sequence": Meaning("sequence number of that collective", None, "48813"),
    "sequence_gap": Meaning("difference of these two sequence numbers", None, "1"),
    "stopped_ranks": Meaning("ranks that the launcher stopped", None, "0,2-7"),
    "spread": Meaning("time between the first and the last failure of a rank", "s", "0.2 s"),
    "same_second": Meaning("number of failed ranks, if all failed within one second", "ranks", "8 ranks"),
    "exited_ranks": Meaning("ranks that exited with the same code within a second", None, "0-3"),
    "exited_code": Meaning("exit code of these ranks", None, "1"),
    "attempt": Meaning("attempt that failed, if there were several", None, "1"),
    "attempt_count": Meaning("number of attempts", None, "3"),
    "host_count": Meaning("number of hosts, if there are several", "hosts", "8 hosts"),
    "seconds_after_failure": Meaning("time from the failure to the end of the log", "s", "12.2 s"),
    "checkpoint_time": Meaning("time at which the newest checkpoint was written", None, "2026-05-01T09:00:00"),
    "checkpoint_age": Meaning("age of that checkpoint at the failure", "s", "1200 s"),
    "steps_since_checkpoint": Meaning("steps lost because of the failure", "steps", "200 steps"),
    # derived_facts
    "run_time": Meaning("elapsed time of the loop or run at the failure", None, "2 h 55 min"),
    "epoch_of_step": Meaning("epoch of the last step, from the second epoch on", None, "3"),
    "steps_left": Meaning("remaining steps", "steps", "600 steps"),
    "all_steps_done": Meaning("number of training steps, if all were completed", None, "1288"),
    "time_left": Meaning("estimated time for the remaining steps", None, "3 h 10 min"),
    "whole_time": Meaning("estimated total time of the run", None, "17 h 17 min"),
    "time_to_ask": Meaning("time limit to request, with a margin, in sbatch's format", None, "20:00:00"),
    # gpu_memory
    "ranks_on_gpu": Meaning(
        "number of ranks with this failure whose memory together fills this GPU", "ranks", "2 ranks"
    ),
    "other_rank_pid": Meaning("process with memory on this GPU that is another rank of the job", None, "198907"),
    "asked_percent": Meaning("requested GPU memory in percent of the memory that PyTorch holds", None, "100"),
    "copies_held": Meaning("number of tensors of the requested size that are already allocated", None, "3"),
    "fits_if_joined": Meaning(
        "free plus reserved but unallocated GPU memory, if the request would fit", None, "21.11 GiB"
    ),
    "unused_percent": Meaning("memory outside PyTorch's cache, in percent of the GPU's memory", None, "4"),
    "held_by_others": Meaning("memory used by other processes on the full GPU", None, "61.50 GiB"),
    "others_percent": Meaning("the same in percent of the GPU's memory", None, "78"),
    "short_by": Meaning("amount by which the request exceeds the free memory", None, "61.44 MiB"),
    "parts_needed": Meaning(
        "number of parts into which the tensor must be split to fit into the free memory", "parts", "7 parts"
    ),
    "half_batch_size": Meaning("half of `batch_size`", None, "4"),
    "double_accumulation": Meaning("twice `gradient_accumulation`, or 2 if it is unknown", None, "8"),
    "beyond_capacity": Meaning("amount of allocated memory beyond the GPU's capacity", None, "5.98 GiB"),
    "job_kind": Meaning("training, evaluation, inference or data preparation", None, "training"),
}


def known_slots(vocabulary: Vocabulary) -> dict[str, str]:
    """Returns the name of every possible fact with its meaning. An entry's captures, and the named groups in a case's
    signs and conditions, are additional slots of that entry or case. `job` is what the user says about the job."""
    versions = {f"{name.replace('-', '_')}_version": f"the version of {name}" for name in packages(vocabulary)}
    own = {name: meaning.what for name, meaning in ENGINE_FACTS.items()}
    tables = {
        name: what for table in TABLES if table in vocabulary.lists for name, what in vocabulary.lists[table].facts
    }
    return {"job": "the job's id, if the sender states it"} | versions | fact_names(vocabulary) | tables | own
