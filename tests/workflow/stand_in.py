"""Acts as any step command, by the name that it is copied to: fast, with scores that the test chose.

It takes exactly the options of the real commands, and its files say where they come from, so that a test can tell
whose results arrived. The file `script.json` beside it holds the scores, the step that fails, and whether two cluster
jobs have to meet.
"""

import argparse
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

OPTIONS = {
    "points": ["action", "file", "--out"],
    "tree": ["--points", "--out"],
    "cluster": ["--method", "--points", "--tree", "--iteration", "--seed", "--preset", "--out", "--record"],
    "aggregate": ["--points", "--labels", "--weights", "--penalty", "--out", "--record"],
    "solve": ["--problem", "--out", "--shots", "--seed", "--record"],
    "score": [
        *("--points", "--labels", "--problem", "--samples", "--out", "--labels-out", "--keep", "--earlier", "--record")
    ],
    "report": ["--run", "--out"],
}
STEP = Path(sys.argv[0]).name.removeprefix("qonduit-")
SCRIPT = json.loads(Path(sys.argv[0]).with_name("script.json").read_text())


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for option in OPTIONS[STEP]:
        many = option in ("--labels", "--earlier") and STEP in ("aggregate", "score")
        required: dict[str, Any] = {"required": True} if option.startswith("-") else {}
        parser.add_argument(option, nargs="+" if many else None, **required)
    return parser.parse_args()


def write(path: str, value: Any) -> None:
    Path(path).write_text(json.dumps(value))


def read(path: str) -> Any:
    return json.loads(Path(path).read_text())


def meet(name: str) -> bool:
    """Whether another cluster job was there too: it waits for it, so two that run at once always meet."""
    folder = Path(sys.argv[0]).with_name("meeting")
    folder.mkdir(exist_ok=True)
    (folder / name).touch()
    patience = time.monotonic() + 20
    while len(list(folder.iterdir())) < 2 and time.monotonic() < patience:
        time.sleep(0.01)
    return len(list(folder.iterdir())) >= 2


def score(options: argparse.Namespace) -> int:
    import numpy as np

    iteration: int = read(options.labels[0])["iteration"]
    write(options.out, {"score": SCRIPT["scores"][iteration], "iteration": iteration})
    np.savez(options.labels_out, labels=np.array([iteration, 0, 1], np.int32), assigned=np.zeros(3, bool))
    record = {"step": "score", "started": time.time(), "earlier": [read(path) for path in options.earlier]}
    write(options.record, record)
    folder = Path(options.keep)
    folder.mkdir()
    for place, path in enumerate(options.labels):
        shutil.copy(path, folder / f"labels-{place}.npz")
    for path in (options.out, options.labels_out, options.problem, options.samples, options.record):
        shutil.copy(path, folder)
    return iteration


def work(options: argparse.Namespace) -> int | None:
    """Does what the step does to files; returns its iteration."""
    iteration: int | None = None
    if STEP == "points":
        shutil.copy(options.file, options.out)
    elif STEP == "tree":
        write(options.out, "tree")
    elif STEP == "cluster":
        iteration = int(options.iteration)
        said = {
            "method": options.method,
            "preset": options.preset,
            "seed": int(options.seed),
            "tree": read(options.tree),
        }
        met = not SCRIPT["meet"] or meet(f"{options.method}-{iteration}")
        write(options.out, {"iteration": iteration, **said, "met": met})
    elif STEP == "aggregate":
        labels = [read(path) for path in options.labels]
        iteration = labels[0]["iteration"]
        write(options.out, {"iteration": iteration, "labels": labels, "is": [options.weights, options.penalty]})
    elif STEP == "solve":
        problem = read(options.problem)
        iteration = problem["iteration"]
        write(options.out, {"iteration": iteration, "shots": int(options.shots), "seed": int(options.seed)})
    elif STEP == "score":
        iteration = score(options)
    elif STEP == "report":
        write(options.out, sorted(path.name for path in Path(options.run).iterdir() if not path.name.startswith(".")))
        Path("scatter.png").write_bytes(b"picture")
    return iteration


if SCRIPT["fail"] == STEP:
    sys.exit(f"qonduit-{STEP}: line 3 of my.csv is not a number; correct it")
given = parse()
began = time.time()
where = work(given)
if "--record" in OPTIONS[STEP] and STEP != "score":
    write(given.record, {"step": STEP, "started": began, "summary": {"iteration": where}})
print(f"qonduit-{STEP}: iteration {where}", file=sys.stderr)
