"""The list of faults: each is a function of a job, with the label that follows from what the function does."""

# mypy: ignore-errors

import dataclasses

BUG = "usage.python-error"
NO, ONCE, YES = ("no",), ("no", "once", "yes"), ("once", "yes")


@dataclasses.dataclass
class Job:
    """What a fault finds: this rank, the number of ranks, the model, its optimizer, and the step."""

    rank: int
    world: int
    victim: int
    net: object = None
    optimizer: object = None
    step: int = 0


@dataclasses.dataclass
class Fault:
    """A fault and its label.

    `causes`: the entries that are right, best first. `says`: pieces of the line that names the cause, one of which the
    log must hold. `at`: "start" is before the process group, "group" right behind it, "step" in the fourth step.
    `ranks`: "one" (the victim alone), "all", or "hidden" (the victim alone, and no log can tell which it was).
    `retry`: what an expert would accept. `since`: the first torch that has what the function calls. `around`: a shell
    command in which the launcher's command stands as {}.
    """

    name: str
    run: object
    causes: tuple
    says: tuple
    at: str = "step"
    ranks: str = "one"
    retry: tuple = NO
    since: str = "2.1"
    around: str = ""


FAULTS = {}


def fault(causes, says, **label):
    """-> a decorator that puts the function into the list under its own name."""
    as_tuple = [(each,) if isinstance(each, str) else tuple(each) for each in (causes, says)]

    def add(run):
        FAULTS[run.__name__] = Fault(run.__name__, run, *as_tuple, **label)
        return run

    return add
