"""From nothing to translations on any laptop: train on the embedded phrasebook, evaluate, translate, look inside.

Each step is a command that you can run and change yourself; it is printed before it runs. What is done is not done
again: a second run continues an interrupted training, or shows what there is.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from common.errors import exit_on_user_error
from configs.load import list_differences, load_config, load_run_config

ROOT = Path(__file__).parents[1]
CONFIG, RUN = "configs/quickstart.yaml", Path("runs/quickstart")
HAND_WRITTEN = "phrasebook:phrases"
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
    """Entry point."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    ).parse_args()
    os.chdir(ROOT)  # the commands are those of the clone, wherever this one is called from
    with exit_on_user_error():
        try:
            if not is_done():
                take_all_steps()
        except KeyboardInterrupt:
            sys.exit("\ninterrupted: the same command continues")
        report()


def take_all_steps() -> None:
    """Train, evaluate on both held-out sets, and draw."""
    run("train.py", CONFIG)
    run("eval.py", str(RUN))
    run("eval.py", str(RUN), f"data.test={HAND_WRITTEN}")
    run("scripts/plot_attention.py", str(RUN), SENTENCE)


def is_done() -> bool:
    """Whether this very experiment has been through all steps."""
    reports = [RUN / "eval/test.json", RUN / "eval/phrasebook.phrases.json"]
    if not (all(path.is_file() for path in reports) and any(RUN.glob("attention/*.html"))):
        return False
    return not list_differences(load_run_config(RUN), load_config(CONFIG))


def run(program: str, *arguments: str) -> None:
    """Show a command as one would type it, and run it; its failure is the end."""
    quoted = " ".join(f'"{argument}"' if " " in argument else argument for argument in arguments)
    print(f"\n$ python {program} {quoted}", flush=True)
    status = wait_for(subprocess.Popen([sys.executable, program, *arguments]))
    if status:
        sys.exit(status)


def wait_for(process: subprocess.Popen[bytes]) -> int:
    """The exit code that a shell would tell. Ctrl-C asks the program, too, and it is given the time to save."""
    while True:
        try:
            status = process.wait()
            return status if status >= 0 else 128 - status
        except KeyboardInterrupt:
            continue


def report() -> None:
    """The scores, the translations of unseen sentences that go with them, and where to look."""
    print(f"\n{RUN} is done (to start it over: rm -r {RUN})\n\nHeld out")
    for title, name in (("generated sentences", "test"), ("hand-written phrases", "phrasebook.phrases")):
        scores = json.loads((RUN / "eval" / f"{name}.json").read_text(encoding="utf-8"))
        print(f"  {title:<26} BLEU {scores['bleu']:.1f}, chrF {scores['chrf']:.1f} on {scores['sources']} sources")
    print("\nAttention, drawn")
    for file in [*sorted(RUN.glob("attention/*.html")), *sorted(RUN.glob("attention/*.png"))]:
        print(f"  {file}")
    print(NEXT, end="")


if __name__ == "__main__":
    main()
