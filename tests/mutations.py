"""Does each promise of docs/reliability.md have a test that fails when it is broken? python -m tests.mutations [WORD …]

Each mutation of mutations.toml breaks the code in one place, in a copy of the working tree. Its test must fail there,
and pass before. With WORDs, only mutations with one of them run.
"""

import argparse
import ast
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Mutation(NamedTuple):
    """In ``file``, ``old``, which occurs once, becomes ``new``; ``test`` must fail."""

    promise: str
    file: str
    old: str
    new: str
    test: str


def read_mutations() -> list[Mutation]:
    listed = tomllib.loads((ROOT / "tests/mutations.toml").read_text(encoding="utf-8"))
    return [Mutation(promise, **places) for promise, places in listed.items()]


def main() -> None:
    """Try all, or those with one of the words, or a draw; exit 1 if a mutation goes unseen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--draw", type=int, metavar="N", help="only N with fast tests, drawn by the commit's hash")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="N mutations at a time")
    options = parser.parse_args()
    chosen = [each for each in read_mutations() if any(word in " ".join(each) for word in options.words or [""])]
    if options.draw:
        commit = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=ROOT, text=True)
        chosen = draw(chosen, options.draw, commit)
    sys.exit(not try_all(chosen, options.jobs))


def draw(mutations: list[Mutation], count: int, commit: str) -> list[Mutation]:
    """``count`` of those whose tests are fast: each commit has its own."""
    fast = [each for each in mutations if not is_slow(each.test)]
    return sorted(fast, key=lambda each: hashlib.sha256(f"{commit} {each.promise}".encode()).digest())[:count]


def is_slow(test: str) -> bool:
    """Whether a test has a marker, such as ``slow``, that keeps it out of ``make test``."""
    file, _, name = test.partition("::")
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    [function] = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
    of_module = [node for node in tree.body if isinstance(node, ast.Assign) and "pytestmark" in ast.unparse(node)]
    marked = "".join(map(ast.unparse, [*function.decorator_list, *of_module]))
    return any(f"pytest.mark.{marker}" in marked for marker in ("slow", "nightly", "aot", "torch"))


def try_all(mutations: list[Mutation], jobs: int) -> bool:
    """Whether each test passes as the code is and fails with its mutation; prints a line for each."""
    tests = list(dict.fromkeys(each.test for each in mutations))
    with tempfile.TemporaryDirectory() as folder:
        trees = [copy_tree(Path(folder) / str(number)) for number in range(jobs)]
        if not pass_in(trees[0], *tests, f"-n{jobs}"):
            print("without any mutation, a test fails among", *tests, sep="\n  ")
            return False
        free: SimpleQueue[Path] = SimpleQueue()
        for tree in trees:
            free.put(tree)
        with ThreadPoolExecutor(jobs) as pool:
            seen = list(pool.map(lambda mutation: is_seen(mutation, free), mutations))
    unseen = [mutation.promise for mutation, found in zip(mutations, seen, strict=True) if not found]
    print(f"\n{len(mutations)} mutations, {len(unseen)} unseen", *unseen, sep="\n  ")
    return not unseen


def copy_tree(tree: Path) -> Path:
    """The files of the working tree that git knows or would add, and the programs that tests have compiled."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.check_output(listed, cwd=ROOT, text=True).split("\0"):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
    git = ["git", "-c", "user.name=tests", "-c", "user.email=tests@localhost"]  # tests ask it for files and the commit
    subprocess.run([*git, "init", "-q"], cwd=tree, check=True)
    subprocess.run([*git, "commit", "-q", "--no-gpg-sign", "--allow-empty", "-m", "mutations"], cwd=tree, check=True)
    programs = ROOT / ".jax_cache"
    programs.mkdir(exist_ok=True)
    (tree / ".jax_cache").symlink_to(programs)
    return tree


def is_seen(mutation: Mutation, free: SimpleQueue[Path]) -> bool:
    """Whether the test fails with the mutation in one of the free trees, where it is then taken back."""
    tree, start = free.get(), time.monotonic()
    file = tree / mutation.file
    whole = file.read_text(encoding="utf-8")
    file.write_text(whole.replace(mutation.old, mutation.new), encoding="utf-8")
    seen = not pass_in(tree, mutation.test)
    file.write_text(whole, encoding="utf-8")
    free.put(tree)
    found = f"{'seen' if seen else 'UNSEEN':<6} {time.monotonic() - start:4.0f} s"
    print(f"{found}  {mutation.promise:<58} {mutation.file:<34} {mutation.test}", flush=True)
    return seen


def pass_in(tree: Path, *tests: str) -> bool:
    """Whether tests pass; a mutation may end the whole program, too."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "", "-p", "no:cacheprovider", *tests]
    environment = os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    status = subprocess.run(command, cwd=tree, capture_output=True, env=environment, check=False).returncode
    assert status not in (4, 5), f"{tests}: pytest ended with {status}"  # there is no such test
    return status == 0


if __name__ == "__main__":
    main()
