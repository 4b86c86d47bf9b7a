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
    "where": Meaning("the user's innermost frame", None, "train/metrics.py:88"),
    "file": Meaning("its file", None, "/job/train/metrics.py"),
    "line_number": Meaning("its line", None, "88"),
    "function": Meaning("its function", None, "compute_f1"),
    "code": Meaning("its code", None, "x = batch['ids']"),
    "raise_code": Meaning("its code, if it only raises", None, "raise ValueError(message)"),
    "script": Meaning("the user's outermost file", None, "/job/train.py"),
    "caller": Meaning("the user's frame above", None, "train.py:120"),
    "caller_code": Meaning("its code", None, "loss = step(batch)"),
    "caller_function": Meaning("its function", None, "main"),
    "callee": Meaning("the library function that the user's line called", None, "load_state_dict"),
    "calls": Meaning("the library functions below the user's line", None, "load → _load → persistent_load"),
    "library": Meaning("the package whose code raised the exception", None, "torch"),
    "library_package": Meaning("the name by which pip knows it, where pip installed it", None, "opencv-python"),
    "library_frame": Meaning("the position in that package", None, "torch/serialization.py:1005"),
    "library_file": Meaning("that file", None, "/opt/venv/lib/python3.11/site-packages/torch/serialization.py"),
    "library_code": Meaning("the code at that position", None, "result = unpickler.load()"),
    "library_function": Meaning("the function at that position", None, "_load"),
    "library_caller": Meaning(
        "the library's frame that called it, if no frame is the user's", None, "accelerate/utils/modeling.py:1391"
    ),
    "library_caller_code": Meaning("its code", None, "return torch.load(checkpoint_file)"),
    "library_caller_function": Meaning("its function", None, "load_state_dict"),
    "forward_where": Meaning("the call whose backward failed, from anomaly mode", None, "model.py:272"),
    "forward_code": Meaning("its code", None, "y = torch.sqrt(x)"),
    "forward_function": Meaning("its function", None, "gate"),
    # library_message, if no case applies
    "raised_by": Meaning(
        "the library's function that printed the message, by its public name", None, "torch.optim.Muon(…)"
    ),
    "own_check": Meaning("the exception that a library's own check raises, unless it can pass", None, "ValueError"),
    "message_values": Meaning("the values in it, as the library's code names them", None, "p.ndim = 1"),
    # exception_message, size_arithmetic, list_differences, missing_module
    "exception": Meaning("the exception's type without its module", None, "KeyError"),
    "message": Meaning("the first line of its message", None, "'ids'"),
    "advice": Meaning("the sentence of it that says what to do", None, "Please use FastVisionModel instead!"),
    "advice_command": Meaning("the command or setting that this sentence names", None, "pip install -U bitsandbytes"),
    "same_elements": Meaning("the number of elements of both shapes in it", None, "517996544"),
    "relation": Meaning("how two sizes in it are related", None, "4608 = 3 × 1536"),
    "first_size": Meaning("the first size of a shape that its elements do not fit", None, "32"),
    "fitting_size": Meaning("the first size that would fit, were the others right", None, "6"),
    "turned_operand": Meaning("the matrix that would fit the product if transposed", None, "10x512"),
    "packed_outputs": Meaning("the outputs of a layer whose 4-bit weight is packed into one row", None, "4096"),
    "division": Meaning("its only two numbers, the larger divided by the smaller", None, "46 = 11 × 4 + 2"),
    "extra_names": Meaning("items that only the first of two lists in it has", None, "reference"),
    "lacking_names": Meaning("items that only the second list has", None, "input, output"),
    "reported_as": Meaning("what the user's code finally raised from it", None, "ValueError: a.jsonl:912 is no JSON"),
    "worker": Meaning("the DataLoader worker that raised it", None, "3"),
    "module": Meaning("the module that was not found", None, "yaml"),
    "package": Meaning("the package that pip installs it with", None, "PyYAML"),
    "own_module": Meaning("the project's own module that was not found", None, "models.blocks"),
    "own_root": Meaning("the folder that holds it, if frames show it", None, "/home/ada/llm/src"),
    "damaged_package": Meaning("the package whose files do not fit each other", None, "transformers"),
    "imported_from": Meaning("the folder of the package that lacks a module or name", None, "/home/ada/torch_npu"),
    "imported_above": Meaning("the folder above it", None, "/home/ada"),
    # computed_values, from what the case captured from the message
    "multiple_below": Meaning("the multiple of `{divisor}` below `{dividend}`", None, "996"),
    "multiple_above": Meaning("the multiple above it", None, "1008"),
    "divisor_below": Meaning("the next divisor of `{dividend}` below `{divisor}`", None, "10"),
    "divisor_above": Meaning("the next one above it", None, "20"),
    "difference": Meaning("`{have}` less `{limit}` or `{want}`, without the sign", None, "293"),
    "surplus": Meaning("the same, if `{have}` is more than `{want}`", None, "4"),
    "third_factor": Meaning("what `{factor}` × `{other_factor}` lacks to be `{product}`", None, "8"),
    "nearest_choice": Meaning("the one of `{choices}` that `{written}` is spelled like", None, "cosine"),
    # code_line
    "operand": Meaning("the expression in the user's line that failed", None, "batch['ids']"),
    "operand_type": Meaning("its type, in the message's words", None, "NoneType"),
    "other_operand": Meaning("the expression on the other side of the operator", None, "self.bias"),
    "other_type": Meaning("its type", None, "str"),
    "attribute": Meaning("the missing attribute", None, "shape"),
    "collection": Meaning("the dict, list or other collection that was indexed or searched", None, "batch"),
    "key": Meaning("the key that it lacks", None, "'ids'"),
    "index": Meaning("the index that it lacks", None, "i + 1"),
    "condition": Meaning("the condition of the assertion", None, "x.dim() == 4"),
    "target": Meaning("the names on the left of the unpacking", None, "image, label"),
    "source": Meaning("what is unpacked", None, "sample"),
    "items_of": Meaning("the same, if a loop unpacks each of its items", None, "train_loader"),
    "imported": Meaning("the module of the import statement", None, "flash_attn"),
    "called": Meaning("the call in the user's line that failed", None, "torch.load"),
    "argument": Meaning("its first argument", None, "args.resume"),
    "code_names": Meaning("the variables in the user's line, worth printing above it", None, "x, self.weight"),
    "passed_name": Meaning("the variable in the failing line that the caller's line passes in", None, "logger"),
    "library_operand": Meaning("the expression that failed in the library's line", None, "input"),
    "library_collection": Meaning("the collection that the library's line indexed", None, "self.plans"),
    "library_index": Meaning("the index that it used", None, "name"),
    "library_condition": Meaning("the condition of the library's assertion", None, "len(rows) > 0"),
    "library_target": Meaning("the names that the library's line unpacks into", None, "rows, columns"),
    "library_source": Meaning("what that line unpacks", None, "shape"),
    # printed_values
    "printed_name": Meaning(
        "a name in the message or the failing operand whose value the log printed", None, "num_classes"
    ),
    "printed_value": Meaning("that value", None, "37"),
    "printed_line": Meaning("the line that printed it", None, "12"),
    "other_printed_name": Meaning("a second such name", None, "labels_path"),
    "other_printed_value": Meaning("the value of the other name", None, "/data/labels.json"),
    "other_printed_line": Meaning("the line that printed it", None, "13"),
    "printed_shapes": Meaning(
        "shapes that the log printed of names in the failing line", None, "x [4, 96], w [128, 10]"
    ),
    "printed_shapes_line": Meaning("the last line that printed them", None, "40"),
    # path_options
    "path_option": Meaning("the option that gave the path in it, as the log printed it", None, "--resume"),
    "path_in_code": Meaning("the user's line that writes that path itself", None, "train.py:17"),
    "folder_option": Meaning("the option that gave a folder above that path", None, "--data_root"),
    "folder_given": Meaning("that folder", None, "/data/coco"),
    # python_environment
    "frameworks": Meaning("the frameworks in the traceback", None, "DDP, Trainer"),
    "environment": Meaning("the Python environment's folder", None, "/home/u/miniconda3/envs/llm"),
    # ranks
    "rank": Meaning("the rank that failed", None, "3"),
    "local_rank": Meaning("its local rank on its host", None, "3"),
    "host": Meaning("its host", None, "gpu-021"),
    "time": Meaning("when it failed", None, "2026-05-01T09:20:00"),
    "ranks": Meaning("all ranks with the same failure, if there are several", None, "0-7"),
    "rank_count": Meaning("how many they are", "ranks", "8 ranks"),
    # rank_differences
    "by_rank": Meaning(
        "the part of the message that differs between ranks", None, "rank 0: [4, 128]; ranks 1-3: [4, 96]"
    ),
    "printed_by_rank": Meaning(
        "the part that differs between ranks in a line printed above the failure",
        None,
        "rank 2: 80; ranks 0-1,3: 96",
    ),
    "printed_by_rank_words": Meaning("the words before it", None, "samples"),
    "printed_by_rank_line": Meaning("the last of these lines", None, "14"),
    "steps_by_rank": Meaning(
        "the last step of each rank, if ranks waited and their steps differ", None, "rank 2: 4; ranks 0-1,3: 5"
    ),
    # list_differences
    "added_prefix": Meaning("prefix of the checkpoint's weight names that the model's lack", None, "model."),
    "lacking_prefix": Meaning("prefix of the model's weight names that the checkpoint's lack", None, "net."),
    "cut_characters": Meaning("number of leading characters missing from the checkpoint's names", None, "7"),
    "cut_name": Meaning("one of them", None, "ist.0.weight"),
    "whole_name": Meaning("the full name", None, "layer_list.0.weight"),
    # shape_differences
    "mismatch_count": Meaning("number of weights whose shapes differ in checkpoint and model", None, "12"),
    "mismatch_kinds": Meaning("number of different reasons, by the ratios of the sizes that differ", None, "2"),
    "mismatch_examples": Meaning(
        "a weight of each, with both shapes", None, "head.weight [1000, 768] against [21, 768]"
    ),
    "mismatch_axis": Meaning("the only dimension of the first of them that differs, counted from 0", None, "0"),
    "saved_size": Meaning("its size there in the checkpoint", None, "8"),
    "current_size": Meaning("its size there in the model", None, "16"),
    # run
    "launcher": Meaning("the launcher that started the processes", None, "torchrun"),
    "world_size": Meaning("number of ranks of the run", "ranks", "64 ranks"),
    "phase": Meaning("what the run was doing when it failed", None, "save"),
    "step": Meaning("the last step of training", None, "1200"),
    "exit_code": Meaning("the exit status of the process that failed", None, "-9"),
    "checkpoint": Meaning("the newest completely written checkpoint", None, "/ckpt/step_1000.pt"),
    "checkpoint_step": Meaning("its step", None, "1000"),
    # ranks, run
    "failed_ranks": Meaning("the ranks that failed on their own", None, "2-3"),
    "waiting_ranks": Meaning("the ranks that reported a lost or missing peer", None, "0-1,4-7"),
    "missing_ranks": Meaning("the ranks that the others waited for", None, "5"),
    "behind_ranks": Meaning("the ranks that waited in an earlier collective than others of their group", None, "11"),
    "behind_call": Meaning("that collective", None, "_ALLGATHER_BASE"),
    "behind_sequence": Meaning("its sequence number", None, "48812"),
    "ahead_ranks": Meaning("the ranks that waited in the latest collective", None, "3"),
    "ahead_call": Meaning("that collective", None, "_REDUCE_SCATTER_BASE"),
    "ahead_sequence": Meaning("its sequence number", None, "48813"),
    "stopped_ranks": Meaning("the ranks that the launcher ended", None, "0,2-7"),
    "spread": Meaning("the time between the first and the last rank that failed", "s", "0.2 s"),
    "same_second": Meaning("number of ranks that failed, if all failed within one second", "ranks", "8 ranks"),
    "exited_ranks": Meaning("the ranks that exited with the same code within a second", None, "0-3"),
    "exited_code": Meaning("that code, as the launcher reports it", None, "1"),
    "attempt": Meaning("the attempt that failed, if there were several", None, "1"),
    "attempt_count": Meaning("number of attempts", None, "3"),
    "host_count": Meaning("number of hosts, if there are several", "hosts", "8 hosts"),
    "seconds_after_failure": Meaning("how long the log continues after the failure", "s", "12.2 s"),
    "checkpoint_time": Meaning("when the newest checkpoint was written", None, "2026-05-01T09:00:00"),
    "checkpoint_age": Meaning("its age at the failure", "s", "1200 s"),
    "steps_since_checkpoint": Meaning("the steps lost by the failure", "steps", "200 steps"),
    # derived_facts
    "run_time": Meaning("how long the loop or run had lasted at the failure", None, "2 h 55 min"),
    "epoch_of_step": Meaning("the epoch in which that step is, from the second on", None, "3"),
    "steps_left": Meaning("remaining steps", "steps", "600 steps"),
    "all_steps_done": Meaning("the number of steps of training, if all were done", None, "1288"),
    "time_left": Meaning("the time they would have taken", None, "3 h 10 min"),
    "whole_time": Meaning("how long the run takes from its start to its end", None, "17 h 17 min"),
    "time_to_ask": Meaning("a time limit with a margin, in sbatch's format", None, "20:00:00"),
    # gpu_memory
    "ranks_on_gpu": Meaning("number of ranks that fail alike and together fill this GPU", "ranks", "2 ranks"),
    "other_rank_pid": Meaning("process with memory on this GPU that is another rank of the job", None, "198907"),
    "copies_held": Meaning("number of tensors of the requested size that are already allocated", None, "3"),
    "fits_if_joined": Meaning(
        "free plus reserved but unallocated GPU memory, if the request would fit", None, "21.11 GiB"
    ),
    "unused_percent": Meaning("memory that PyTorch's cache does not use, in percent of the GPU's", None, "4"),
    "held_by_others": Meaning("memory of the full GPU that other processes hold", None, "61.50 GiB"),
    "others_percent": Meaning("the same in percent of the GPU's memory", None, "78"),
    "short_by": Meaning("how much the request exceeds the free memory", None, "61.44 MiB"),
    "parts_needed": Meaning(
        "number of parts into which the tensor must be split to fit into the free memory", "parts", "7 parts"
    ),
    "half_batch_size": Meaning("half of `batch_size`", None, "4"),
    "double_accumulation": Meaning("twice `gradient_accumulation`, 2 if unknown", None, "8"),
    "beyond_capacity": Meaning("how much more is allocated than the GPU has", None, "5.98 GiB"),
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
