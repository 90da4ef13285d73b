"""Show where the time of training steps goes: python scripts/show_profile.py RUN.

Train with training.profile=[21,30] first: these steps are recorded in RUN/profile, which XProf and Perfetto can show,
too. This program prints

  idle          the share of the time in which a device did nothing, and its longest pause
  kinds         matrix products, attention by cuDNN, copies and transposes, transfers between devices, the rest
  operations    the longest ones, by the names of kernels on a GPU and of XLA's operations elsewhere
"""

import json
from pathlib import Path

from benchmarks.profile import find_profile, read_profile, summarize
from cli.command_line import Parser, output_file
from common.errors import exit_on_user_error
from common.files import write_atomically
from common.text_table import as_markdown, as_text


@exit_on_user_error()
def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument("RUN", type=Path, help="a run directory with a profile, such as runs/tatoeba-small")
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    parser.add_argument("--json", type=output_file, metavar="FILE", help="write all figures, of all operations")
    arguments = parser.parse_args()
    path = find_profile(arguments.RUN)
    tables, figures = summarize(read_profile(path))
    print(f"{path}\n")
    print("\n\n".join(as_markdown(table) if arguments.markdown else as_text(table) for table in tables))
    if arguments.json:
        write_atomically(arguments.json, json.dumps({"profile": str(path)} | figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
