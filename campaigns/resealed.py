"""Hostile stores with valid checksums: readers accept them or raise an error of ambar.

No read may crash, hang, take more than 1 GiB of memory, or raise another error.
"""

from __future__ import annotations

import copy

from campaigns import mutation, samples, seal
from campaigns.campaign import Run
from campaigns.worker import Worker


def run(run: Run) -> None:
    """Change stores of every kind, seal them again, and read them in every way."""
    stores = samples.write_all(run.folder / "stores")
    sound = {name: seal.read(path) for name, path in stores.items()}
    names = list(sound)
    path = run.folder / "case.ambar"
    run.begin()
    with Worker() as worker:
        for case in run.cases():
            rng = run.random(case)
            image = copy.deepcopy(sound[names[rng.integers(len(names))]])
            if rng.random() < 0.25:
                image.sealed.clear()
            changed = mutation.change_store(image, rng)
            seal.write(path, image)
            run.count("images")
            answer = worker.call("reads.everything", str(path), case % 4 == 0)
            for failure in (answer.died, answer.error):
                if failure is not None:
                    run.finding(case, f"{changed}: {failure}", path)
            if answer.value is not None:
                run.count("reads", answer.value.reads)
                run.count("refused", answer.value.refused)
                for failure in answer.value.foreign:
                    run.finding(case, f"{changed}: {failure}", path)
