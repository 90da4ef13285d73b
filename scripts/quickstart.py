"""From nothing to translations on any laptop: train on the built-in phrasebook, evaluate, translate, look inside.

Each step is a command that you can run and change yourself; it is printed before it runs. Finished steps are not
repeated: a second run continues an interrupted training, or shows the results.
"""

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # this clone's rooms, whatever PYTHONPATH has

from cli.command_line import Parser
from common.errors import UserError, exit_on_user_error
from configs.load import find_differences, load_config, load_run_config
from experiment.load_run import load_run
from experiment.reports import place_report
from training.run.corpus import load_held_out
from training.run.layout import CONFIG, PICTURES

ROOT = Path(__file__).parents[1]
EXPERIMENT, RUN = "configs/quickstart.yaml", Path("runs/quickstart")
PHRASES = "phrasebook:phrases"
SENTENCE = "My sister is going to buy the white shoes."


@exit_on_user_error()
def main() -> None:
    Parser(__doc__).parse_args()
    os.chdir(ROOT)  # the commands are relative to the clone
    try:
        if not is_done():
            run("train.py", EXPERIMENT)
            run("eval.py", str(RUN))
            run("eval.py", str(RUN), f"data.test={PHRASES}")
            run("scripts/plot_attention.py", str(RUN), SENTENCE)
    except KeyboardInterrupt:
        sys.exit("\ninterrupted: the same command continues")
    report()


def is_done() -> bool:
    """Whether every step has run with the present config."""
    if not ((RUN / CONFIG).is_file() and all(find_reports().values()) and any((RUN / PICTURES).glob("*.html"))):
        return False
    return not find_differences(load_run_config(RUN), load_config(EXPERIMENT))


def find_reports() -> dict[str, Path | None]:
    """The report on each held-out set, by the set's title."""
    phrases = load_run(RUN, [f"data.test={PHRASES}"], may_change={"data.test"})
    sha256 = load_held_out(phrases.config.data, "test", RUN)[1].sha256
    own, other = place_report(load_run(RUN)).find(), place_report(phrases, sha256).find()
    return {"generated sentences": own, "hand-written phrases": other}


def run(program: str, *arguments: str) -> None:
    """Print a command as a user would type it, and run it; exit with its code, as a shell reports it, if it fails."""
    quoted = " ".join(f'"{argument}"' if " " in argument else argument for argument in arguments)
    print(f"\n$ python {program} {quoted}", flush=True)
    process, status = subprocess.Popen([sys.executable, program, *arguments]), None
    while status is None:
        with suppress(KeyboardInterrupt):  # it reaches the program too, which then has time to save
            status = process.wait()
    if status:
        sys.exit(status if status > 0 else 128 - status)


def report() -> None:
    print(f"\n{RUN} is done (to start it over: rm -r {RUN})\n\nHeld out")
    for title, path in find_reports().items():
        if path is None:
            raise UserError(f"{RUN}/eval has no report on its {title}; to start over: rm -r {RUN}")
        scores = json.loads(path.read_text(encoding="utf-8"))
        print(f"  {title:<26} BLEU {scores['bleu']:.1f}, chrF {scores['chrf']:.1f} on {scores['sources']} sources")
    print("\nAttention, drawn")
    for file in [*sorted((RUN / PICTURES).glob("*.html")), *sorted((RUN / PICTURES).glob("*.png"))]:
        print(f"  {file}")
    next_steps = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
    print(next_steps.format(run=RUN, config=EXPERIMENT), end="")


if __name__ == "__main__":
    main()
