"""Measures how often a watch reports a hang in a healthy simulated run, and how soon it reports a simulated hang. Time
is simulated."""

from __future__ import annotations

import argparse
from statistics import median

from tests.client.made_runs import made_hang, made_run, watched


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100, help="how many of each kind (100)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.runs)
    print("| made runs | of | alarms | seconds from hang to message: median, 90 of 100, most |\n|---|---|---|---|")
    for name, silent, stacks in (
        ("no failure", False, False),
        ("no failure, evaluations that only stacks show", True, True),
        ("the same, but no stacks can be had", True, False),
    ):
        runs = [list(made_run(seed, silent_evaluations=silent)) for seed in seeds]
        alarms = sum(bool(watched(run, run[-1].at + 1, stacks)) for run in runs)
        print(f"| {name} | {len(runs)} | {alarms} | |")
    took = []
    for run, since in map(made_hang, seeds):
        news = watched(run, since + 3600)
        if news and news[0][0] > since:
            took.append(news[0][0] - since)
    took.sort()
    told = f"{median(took):.0f}, {took[len(took) * 9 // 10 - 1]:.0f}, {took[-1]:.0f}"
    print(f"| hangs | {len(seeds)} | {len(took)} | {told} |")


if __name__ == "__main__":
    main()
