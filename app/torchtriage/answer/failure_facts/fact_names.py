"""All names of facts, which are the slots of cases too, with what each means; docs/facts.md is made from here."""

from __future__ import annotations

from typing import NamedTuple

from torchtriage.answer.failure_facts.lookup_tables import TABLES
from torchtriage.domain.vocabulary import Vocabulary
from torchtriage.facts.line_values import fact_names
from torchtriage.facts.versions import PACKAGES


class Meaning(NamedTuple):
    """What a fact says, its unit, and one value of it."""

    what: str
    unit: str | None
    example: str


# Of the failure and its run, by the kinds in the registry; what single lines say is in the vocabulary.
ENGINE_FACTS: dict[str, Meaning] = {
    # frames
    "where": Meaning("the user's innermost frame", None, "train/metrics.py:88"),
    "file": Meaning("its file", None, "/job/train/metrics.py"),
    "line_number": Meaning("its line", None, "88"),
    "function": Meaning("its function", None, "compute_f1"),
    "code": Meaning("its code", None, "x = batch['ids']"),
    "raise_code": Meaning("its code, where that only raises", None, "raise ValueError(message)"),
    "script": Meaning("the user's outermost file", None, "/job/train.py"),
    "caller": Meaning("the user's frame above", None, "train.py:120"),
    "caller_code": Meaning("its code", None, "loss = step(batch)"),
    "caller_function": Meaning("its function", None, "main"),
    "callee": Meaning("the library function that the user's line called", None, "load_state_dict"),
    "calls": Meaning("the library functions below the user's line", None, "load → _load → persistent_load"),
    "library": Meaning("the package whose code raised", None, "torch"),
    "library_frame": Meaning("where in that package", None, "torch/serialization.py:1005"),
    "library_code": Meaning("the code there", None, "result = unpickler.load()"),
    "library_function": Meaning("the function there", None, "_load"),
    "forward_where": Meaning("the user's call whose backward failed, as anomaly mode tells it", None, "model.py:272"),
    "forward_code": Meaning("its code", None, "y = torch.sqrt(x)"),
    "forward_function": Meaning("its function", None, "gate"),
    # library_message, where no case speaks
    "raised_by": Meaning(
        "the library's function that printed the message, by its public name", None, "torch.optim.Muon(…)"
    ),
    "message_values": Meaning("the values in it, as the library's code names them", None, "p.ndim = 1"),
    # exception_message, size_arithmetic, list_differences, missing_module
    "exception": Meaning("the exception's type without its module", None, "KeyError"),
    "message": Meaning("the first line of its message", None, "'ids'"),
    "same_elements": Meaning("how many elements both of the two shapes in it hold", None, "517996544"),
    "relation": Meaning("what two sizes in it have to do with one another", None, "4608 = 3 × 1536"),
    "turned_operand": Meaning("the matrix of a product that would fit if it were transposed", None, "10x512"),
    "packed_outputs": Meaning("the outputs of a layer whose 4-bit weight came packed into one row", None, "4096"),
    "division": Meaning("the larger of its only two numbers divided by the smaller", None, "46 = 11 × 4 + 2"),
    "extra_names": Meaning("what the first of two lists in it has and the second lacks", None, "reference"),
    "lacking_names": Meaning("the other way round", None, "input, output"),
    "reported_as": Meaning("what the user's code raised of it in the end", None, "ValueError: a.jsonl:912 is no JSON"),
    "worker": Meaning("the worker process of the data loader that raised", None, "3"),
    "module": Meaning("the module that was not found", None, "yaml"),
    "package": Meaning("the package by which pip installs it", None, "PyYAML"),
    "own_module": Meaning("the module that was not found, one of the project's own", None, "models.blocks"),
    # code_line
    "operand": Meaning("the expression in the user's line that failed", None, "batch['ids']"),
    "operand_type": Meaning("its type, in the message's words", None, "NoneType"),
    "other_operand": Meaning("the expression on the other side of the operator", None, "self.bias"),
    "other_type": Meaning("its type", None, "str"),
    "attribute": Meaning("the attribute that was asked for", None, "shape"),
    "collection": Meaning("the dict, list or other collection that was indexed or searched", None, "batch"),
    "key": Meaning("the key that it lacks", None, "'ids'"),
    "index": Meaning("the index that it lacks", None, "i + 1"),
    "condition": Meaning("the condition of the assertion", None, "x.dim() == 4"),
    "target": Meaning("the names that the values are unpacked into", None, "image, label"),
    "source": Meaning("what is unpacked", None, "sample"),
    "imported": Meaning("the module of the import statement", None, "flash_attn"),
    "called": Meaning("the call in the user's line that failed", None, "torch.load"),
    "argument": Meaning("its first argument", None, "args.resume"),
    "code_names": Meaning("the variables in the user's line, to be printed above it", None, "x, self.weight"),
    "library_operand": Meaning("the expression that failed in the library's line", None, "input"),
    # printed_values
    "printed_name": Meaning(
        "a name in the message or the failing operand whose value the log printed", None, "num_classes"
    ),
    "printed_value": Meaning("that value", None, "37"),
    "printed_line": Meaning("the line that printed it", None, "12"),
    "other_printed_name": Meaning("a second such name", None, "labels_path"),
    "other_printed_value": Meaning("its value", None, "/data/labels.json"),
    "other_printed_line": Meaning("the line that printed it", None, "13"),
    "printed_shapes": Meaning(
        "shapes that the log printed of names in the failing line", None, "x [4, 96], w [128, 10]"
    ),
    "printed_shapes_line": Meaning("the line that printed them last", None, "40"),
    # python_environment
    "frameworks": Meaning("the frameworks in the traceback", None, "DDP, Trainer"),
    "environment": Meaning("the Python environment's folder", None, "/home/u/miniconda3/envs/llm"),
    # failing_rank
    "rank": Meaning("the rank that failed", None, "3"),
    "local_rank": Meaning("its number on its host", None, "3"),
    "host": Meaning("its host", None, "gpu-021"),
    "time": Meaning("when it failed", None, "2026-05-01T09:20:00"),
    "ranks": Meaning("the ranks that show the same failure, where several do", None, "0-7"),
    "rank_count": Meaning("how many they are", "ranks", "8 ranks"),
    # rank_differences
    "by_rank": Meaning("what differs from rank to rank in the message", None, "rank 0: [4, 128]; ranks 1-3: [4, 96]"),
    "printed_by_rank": Meaning(
        "what differs in a line that ranks printed above it, of shapes or where ranks waited",
        None,
        "rank 2: 80; ranks 0-1,3: 96",
    ),
    "printed_by_rank_words": Meaning("the words before it", None, "samples"),
    "printed_by_rank_line": Meaning("the last of these lines", None, "14"),
    "steps_by_rank": Meaning(
        "the last step of each rank, where ranks waited and differ", None, "rank 2: 4; ranks 0-1,3: 5"
    ),
    # weight_names
    "added_prefix": Meaning(
        "what stands before each name of the checkpoint's weights, not of the model's", None, "model."
    ),
    "lacking_prefix": Meaning(
        "what stands before each name of the model's weights, not of the checkpoint's", None, "net."
    ),
    "cut_characters": Meaning("how many characters the checkpoint's names lost at their beginning", None, "7"),
    "cut_name": Meaning("one of them", None, "ist.0.weight"),
    "whole_name": Meaning("what it was", None, "layer_list.0.weight"),
    # run
    "launcher": Meaning("what started the processes", None, "torchrun"),
    "world_size": Meaning("how many ranks the run has", "ranks", "64 ranks"),
    "phase": Meaning("what the run did when it failed", None, "save"),
    "step": Meaning("the last step of training", None, "1200"),
    "exit_code": Meaning("the exit status of the process that failed", None, "-9"),
    "checkpoint": Meaning("the newest checkpoint that was written to its end", None, "/ckpt/step_1000.pt"),
    "checkpoint_step": Meaning("its step", None, "1000"),
    # waiting_ranks, run
    "failed_ranks": Meaning("the ranks that failed on their own", None, "2-3"),
    "waiting_ranks": Meaning("the ranks that noticed that others were gone", None, "0-1,4-7"),
    "missing_ranks": Meaning("the ranks that the others waited for", None, "5"),
    "behind_ranks": Meaning("the ranks that waited in an earlier collective than others of their group", None, "11"),
    "behind_call": Meaning("that collective", None, "_ALLGATHER_BASE"),
    "behind_sequence": Meaning("its sequence number", None, "48812"),
    "ahead_ranks": Meaning("the ranks that waited in the latest collective", None, "3"),
    "ahead_call": Meaning("that collective", None, "_REDUCE_SCATTER_BASE"),
    "ahead_sequence": Meaning("its sequence number", None, "48813"),
    "stopped_ranks": Meaning("the ranks that the launcher ended", None, "0,2-7"),
    "spread": Meaning("the time between the first and the last rank that failed", "s", "0.2 s"),
    "same_second": Meaning("how many ranks failed within one second, where all did", "ranks", "8 ranks"),
    "attempt": Meaning("the attempt that failed, where there were several", None, "1"),
    "attempt_count": Meaning("how many attempts there were", None, "3"),
    "host_count": Meaning("how many hosts the run has, where several", "hosts", "8 hosts"),
    "seconds_after_failure": Meaning("how long the log goes on after the failure", "s", "12.2 s"),
    "checkpoint_time": Meaning("when the newest checkpoint was written", None, "2026-05-01T09:00:00"),
    "checkpoint_age": Meaning("how old it was at the failure", "s", "1200 s"),
    "steps_since_checkpoint": Meaning("the steps that are lost with the failure", "steps", "200 steps"),
    # derived_facts
    "run_time": Meaning("how long the loop or the run had lasted at the failure", None, "2 h 55 min"),
    "steps_left": Meaning("steps that were still to do", "steps", "600 steps"),
    "time_left": Meaning("how long they would have taken", None, "3 h 10 min"),
    "whole_time": Meaning("how long the run takes from its start to its end", None, "17 h 17 min"),
    "time_to_ask": Meaning("a time limit for it, with a margin, as sbatch takes it", None, "20:00:00"),
    # gpu_memory
    "copies_held": Meaning("how many tensors of the size that was asked for are allocated already", None, "3"),
    "fits_if_joined": Meaning(
        "free and unused memory of a GPU, where it would hold what was asked for", None, "21.11 GiB"
    ),
    "held_by_others": Meaning("memory of the full GPU that this process does not hold", None, "61.50 GiB"),
    "others_percent": Meaning("the same in percent of the GPU's memory", None, "78"),
    "short_by": Meaning("how much more was asked for than was free", None, "61.44 MiB"),
    "parts_needed": Meaning("into how many parts a tensor must be split to fit into what was free", "parts", "7 parts"),
    "half_batch_size": Meaning("half of `batch_size`", None, "4"),
    "double_accumulation": Meaning("twice `gradient_accumulation`, 2 where none is known", None, "8"),
    "beyond_capacity": Meaning("how much more is allocated than the GPU has", None, "5.98 GiB"),
    "job_kind": Meaning("training, evaluation, inference or data preparation", None, "training"),
}


def known_slots(vocabulary: Vocabulary) -> dict[str, str]:
    """-> every name that a fact can have, with what it means. What an entry captures and the groups of a case's signs
    and conditions are slots of that entry and that case besides; `job` is what the one who asks says about the job."""
    versions = {f"{name.replace('-', '_')}_version": f"the version of {name}" for name in PACKAGES}
    own = {name: meaning.what for name, meaning in ENGINE_FACTS.items()}
    tables = {
        name: what for table in TABLES if table in vocabulary.lists for name, what in vocabulary.lists[table].facts
    }
    return {"job": "the job's id, where the one who asks tells it"} | versions | fact_names(vocabulary) | tables | own
