"""Strings that tokenizers treat differently, or not at all."""

HOSTILE = [
    *("</s>", "<s> a </s>", ">>es<< Tom runs.", "<2es> Tom", "a▁b ▁", "Tom 😀👩‍👩‍👧 runs"),
    *("e\u0301 n\u0303 \u1e9b\u0323", "\ufeffTom", "a\x00b\x1f\x7fc", "tab\there", "ﬁ ﬃ", "\u202eTom\u202c"),
    *("<0x41><0xC3>", "日本語", "-" * 300, "'\"\\"),
]
