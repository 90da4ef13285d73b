"""From nothing to translations on any laptop: train on the built-in phrasebook, evaluate, translate, look inside.

Each step is a command that you can run and change yourself; it is printed before it runs. Finished steps are not
repeated: a second run continues an interrupted training, or shows the results.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from common.errors import exit_on_user_error
from configs.load import list_differences, load_config, load_run_config

ROOT = Path(__file__).parents[1]
CONFIG, RUN = "configs/quickstart.yaml", Path("runs/quickstart")
HELD_OUT = {"test": "generated sentences", "phrasebook.phrases": "hand-written phrases"}
SENTENCE = "My sister is going to buy the white shoes."

NEXT = f"""
Try next
  translate your own words     python scripts/translate.py {RUN}
  another sentence's attention python scripts/plot_attention.py {RUN} "The white cat is sleeping on the table."
  Spanish to English           python train.py {CONFIG} data.source=es data.target=en run_dir=runs/reverse
  your own sentences           python train.py {CONFIG} data.train=mine.tsv data.valid= data.test= run_dir=runs/mine
  what the corpus looks like   python scripts/inspect_data.py {CONFIG}
  every setting, explained     python train.py --help
  real text                    configs/tatoeba-small.yaml; README.md says where its corpus comes from
"""


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    ).parse_args()
    os.chdir(ROOT)  # the commands are relative to the clone
    with exit_on_user_error():
        try:
            if not is_done():
                take_all_steps()
        except KeyboardInterrupt:
            sys.exit("\ninterrupted: the same command continues")
        report()


def take_all_steps() -> None:
    """Train, evaluate on both held-out sets, and draw the attention of one sentence."""
    run("train.py", CONFIG)
    run("eval.py", str(RUN))
    run("eval.py", str(RUN), "data.test=phrasebook:phrases")
    run("scripts/plot_attention.py", str(RUN), SENTENCE)


def is_done() -> bool:
    """Whether every step has run with the present config."""
    reports = [RUN / "eval" / f"{name}.json" for name in HELD_OUT]
    if not (all(path.is_file() for path in reports) and any(RUN.glob("attention/*.html"))):
        return False
    return not list_differences(load_run_config(RUN), load_config(CONFIG))


def run(program: str, *arguments: str) -> None:
    """Print a command as a user would type it, and run it; exit with its code if it fails."""
    quoted = " ".join(f'"{argument}"' if " " in argument else argument for argument in arguments)
    print(f"\n$ python {program} {quoted}", flush=True)
    status = wait_for(subprocess.Popen([sys.executable, program, *arguments]))
    if status:
        sys.exit(status)


def wait_for(process: subprocess.Popen[bytes]) -> int:
    """The exit code as a shell reports it. Ctrl-C reaches the program too, which then has time to save."""
    while True:
        try:
            status = process.wait()
            return status if status >= 0 else 128 - status
        except KeyboardInterrupt:
            continue


def report() -> None:
    """Print the scores, the pictures and what to try next."""
    from evaluation.evaluate import read_report  # imports JAX, which the commands before do not need here

    print(f"\n{RUN} is done (to start it over: rm -r {RUN})\n\nHeld out")
    for name, title in HELD_OUT.items():
        scores = read_report(RUN, name)
        print(f"  {title:<26} BLEU {scores.bleu:.1f}, chrF {scores.chrf:.1f} on {scores.sources} sources")
    print("\nAttention, drawn")
    for file in [*sorted(RUN.glob("attention/*.html")), *sorted(RUN.glob("attention/*.png"))]:
        print(f"  {file}")
    print(NEXT, end="")


if __name__ == "__main__":
    main()
