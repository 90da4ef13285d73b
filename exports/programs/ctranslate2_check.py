"""Ask an export what it says: python ctranslate2_check.py FOLDER <questions.json >answers.json, in a fresh process."""

import json
import sys

import ctranslate2

if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    from translate import Model

    questions = json.load(sys.stdin)
    model = Model(intra_threads=questions["threads"])
    scored = model.translator.score_batch(questions["sources"], questions["targets"], max_input_length=0)
    json.dump(
        {
            "library": f"ctranslate2 {ctranslate2.__version__}",
            "log_probs": [each.log_probs for each in scored],
            "encoded": [model.encode(line) for line in questions["lines"]],
            "translations": model.translate(questions["lines"]),
            "pieces": model.translate_pieces(questions["sources"]),
        },
        sys.stdout,
    )
