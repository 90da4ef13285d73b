"""Get results from an export: python check.py FOLDER <questions.json >answers.json, in a new process."""

import json
import sys

if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    from translate import Model

    questions = json.load(sys.stdin)
    model = Model()
    answers = {
        "library": model.library,
        "log_probs": [model.log_probs(*pair) for pair in zip(questions["sources"], questions["targets"], strict=True)],
        "encoded": [model.encode(line) for line in questions["lines"]],
        "translations": model.translate(questions["lines"]),
        "pieces": model.translate_pieces(questions["sources"]),
    }
    json.dump(answers, sys.stdout)
