"""Makes small tokenizers of our own, and records what Hugging Face's `tokenizers` does with them.

    make_vectors.py FOLDER [CASES]

Writes FOLDER/NAME/tokenizer.json and FOLDER/NAME/cases.json, with so many cases each (60). Needs the
package `tokenizers` in version 0.23. Everything comes from this file: the vocabularies are trained on the
texts below, which are ours, and the same each time.
"""

import json
import random
import sys
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

TEXTS = [
    "A tokenizer turns text into numbers, and numbers into text. It's fast, isn't it? They'll see, we've seen.",
    "Training a model on a small machine takes time; sampling from it takes less. The machine has two cores.",
    "for (int i = 0; i < 10; ++i) { total += values[i] * 2; }  // sums twice the values\n\treturn total;\r\n",
    "Die Maschine hat größere Wörter: Straße, Übung, Fuß. Où est la forêt? À côté de l'hôtel où l'été passe.",
    "Тексты на русском языке тоже становятся числами. Модель учится медленно, но верно.",
    "機械は文章を数字に変えます。テキスト、カタカナ・ひらがな。我们把文字变成数字，然后再变回来。模型学习很慢。",
    "모델은 천천히 배웁니다. 글을 숫자로 바꿉니다. हम पाठ को संख्याओं में बदलते हैं। النص يصبح أرقاما ١٢٣.",
    "2024-05-17 12:30:59 value=3.14159 x1y22z333 10000000 ½ Ⅷ ²",
]
PIECES = [
    "the machine", " it's", "We'LL", "isn't", " don't", " tokens", "HTTPServer", "camelCase", "größe", "STRASSE", "Où",
    "числа", "модель", "機械", "文字", "カタカナ・", "숫자", "संख्याओं", "أرقاما", "١٢٣", "1234567", " 42", "3.14", "½", "e\u0301", "a\u0308\u0323",
    "q\u0307\u0323", "\u1100\u1161\u11a8", "ﬁ", "Å", "Ａ１", "😀", "👩‍👩‍👧", "🇩🇪", "❤️", "\u0301", "\u200b", "\ufeff", "\x00", "\x07", "\x85", "\u00a0", "\u3000",
    " ", "  ", "     ", "\n", "\n\n", "\r\n", " \n ", "\t", "!", "...", "?!", " -", "--", "_", "'", "''", "’s", "'ſ", "/", "==", "{}", "<s>", "</s>", "[CLS]",
    "[MASK]", " [MASK] ", "<|end|>", "<|end|", "<tool>", " <tool>", "word", "Word", "swords", "\U00020000", "\U0001f9d1\u200d\U0001f680", "ß", "İ", "Σ", "ǅ",
]
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
WORDS = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
O200K = (rf"[^\r\n\p{{L}}\p{{N}}]?{WORDS[0]}*{WORDS[1]}+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{{L}}\p{{N}}]?{WORDS[0]}+{WORDS[1]}*"
         r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
            "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
            "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"]


def special(*texts):
    return [AddedToken(text, special=True, normalized=False) for text in texts]


def byte_level(pre_tokenizer, size=340, **options):
    tokenizer = Tokenizer(models.BPE(**options))
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(TEXTS, trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    return tokenizer


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), behavior, invert),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def gpt2():
    tokenizer = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True))
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    tokenizer.add_special_tokens(special("<|end|>"))
    return tokenizer


def roberta():
    tokenizer = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False))
    tokenizer.add_special_tokens(special("<s>", "</s>") + [AddedToken("[MASK]", special=True, lstrip=True, normalized=False)])
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", tokenizer.token_to_id("</s>")), ("<s>", tokenizer.token_to_id("<s>")))
    return tokenizer


def llama3():
    tokenizer = byte_level(split(LLAMA3), ignore_merges=True)
    tokenizer.add_special_tokens(special("<s>", "<|end|>"))
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))])])
    return tokenizer


def qwen2():
    tokenizer = byte_level(split(QWEN2))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_special_tokens(special("<|end|>"))
    tokenizer.add_tokens([AddedToken("<tool>", special=False, normalized=False)])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def o200k():
    tokenizer = byte_level(split(O200K, "removed", True))
    tokenizer.add_special_tokens(special("<|end|>"))
    return tokenizer


def deepseek():
    splits = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in DEEPSEEK]
    tokenizer = byte_level(pre_tokenizers.Sequence(
        [*splits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]))
    tokenizer.normalizer = normalizers.Sequence([])
    tokenizer.add_tokens([AddedToken("<tool>", normalized=True), AddedToken("word", normalized=True, single_word=True)])
    return tokenizer


def command():
    tokenizer = byte_level(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                    pre_tokenizers.ByteLevel(add_prefix_space=False)]))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.add_special_tokens(special("<s>"))
    return tokenizer


def llama2():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    trained = Tokenizer(models.BPE())
    trained.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trained.train_from_iterator(TEXTS[:4], trainers.BpeTrainer(vocab_size=160, show_progress=False))
    model = json.loads(trained.to_str())["model"]
    vocab = {"<unk>": 0, "<s>": 1, "</s>": 2, **{f"<0x{i:02X}>": i + 3 for i in range(256)}}
    for text in model["vocab"]:
        vocab.setdefault(text, len(vocab))
    tokenizer.model = models.BPE(vocab=vocab, merges=[tuple(pair) for pair in model["merges"]], unk_token="<unk>",
                                 fuse_unk=True, byte_fallback=True)
    tokenizer.normalizer = trained.normalizer
    tokenizer.add_special_tokens(special("<unk>", "<s>", "</s>"))
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    return tokenizer


def metaspace():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=True)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="first")
    tokenizer.train_from_iterator(TEXTS[:5], trainers.BpeTrainer(vocab_size=220, special_tokens=["<unk>"], show_progress=False))
    tokenizer.add_special_tokens([AddedToken("<s>", special=True, rstrip=True, normalized=False)])
    tokenizer.add_tokens([AddedToken("[MASK]", lstrip=True, rstrip=True, normalized=False),
                          AddedToken("word", single_word=True, normalized=False), AddedToken("<tool>", normalized=True)])
    return tokenizer


def suffix():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("isolated")])
    tokenizer.decoder = decoders.BPEDecoder("</w>")
    tokenizer.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=460, special_tokens=["<unk>"], end_of_word_suffix="</w>",
                                                             show_progress=False))
    return tokenizer


def prefix():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##", fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.decoder = decoders.WordPiece(cleanup=False)
    tokenizer.train_from_iterator(TEXTS[:3], trainers.BpeTrainer(
        vocab_size=260, special_tokens=["<unk>"], continuing_subword_prefix="##", show_progress=False))
    return tokenizer


def unigram(byte_fallback):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=not byte_fallback)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    tokenizer.train_from_iterator(TEXTS, trainers.UnigramTrainer(vocab_size=330, special_tokens=["<unk>", "<s>", "</s>"],
                                                                 unk_token="<unk>", show_progress=False))
    if byte_fallback:
        document = json.loads(tokenizer.to_str())
        document["model"]["vocab"] += [[f"<0x{i:02X}>", -20.0] for i in range(256)]
        document["model"]["byte_fallback"] = True
        document["decoder"] = {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
        tokenizer = Tokenizer.from_str(json.dumps(document))
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    return tokenizer


def bert():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=20))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(TEXTS, trainers.WordPieceTrainer(
        vocab_size=420, special_tokens=["[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    return tokenizer


def word_level(pre_tokenizer, normalizer=None, decoder=None):
    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer:
        tokenizer.normalizer = normalizer
    if decoder:
        tokenizer.decoder = decoder
    tokenizer.train_from_iterator(TEXTS, trainers.WordLevelTrainer(vocab_size=160, special_tokens=["<unk>", "<pad>", "|"],
                                                                   show_progress=False))
    return tokenizer


def tokenizers():
    accents = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()])
    sequence = pre_tokenizers.Sequence
    return {
        "gpt2": gpt2(), "roberta": roberta(), "llama3": llama3(), "qwen2": qwen2(), "o200k": o200k(), "deepseek": deepseek(),
        "command": command(), "llama2": llama2(), "metaspace": metaspace(), "suffix": suffix(), "prefix": prefix(),
        "unigram": unigram(False), "unigram_bytes": unigram(True), "bert": bert(),
        "words": word_level(pre_tokenizers.Whitespace(), accents),
        "scripts": word_level(sequence([pre_tokenizers.UnicodeScripts(), pre_tokenizers.Digits(False)]), normalizers.NFKD()),
        "fixed": word_level(sequence([pre_tokenizers.CharDelimiterSplit("a"), pre_tokenizers.FixedLength(3)]), None,
                            decoders.CTC("<pad>", "|")),
        "contiguous": word_level(sequence([pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.Split(" ", "merged_with_next")])),
        "merged": word_level(sequence([pre_tokenizers.Split(Regex(r"[\s\h&&[^0-9]]+|\w\d"), "merged_with_previous"),
                                       pre_tokenizers.Split("e", "removed", True)]),
                             normalizers.BertNormalizer(lowercase=False, strip_accents=True, handle_chinese_chars=False)),
        "mapped": word_level(sequence([pre_tokenizers.ByteLevel(add_prefix_space=True), pre_tokenizers.Digits(True)]), None,
                             decoders.ByteLevel()),
        "byte_normalizer": word_level(pre_tokenizers.Split(Regex("Ġ+"), "isolated"),
                                      normalizers.Sequence([normalizers.NFKC(), normalizers.ByteLevel()])),
    }


def main():
    folder, count = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 60
    chance = random.Random(5)
    for name, tokenizer in tokenizers().items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        document = json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":"))
        # As it is read back: scores lose their last bit.
        tokenizer = Tokenizer.from_str(document)
        cases = []
        for i in range(count):
            text = "".join(chance.choice(PIECES) for _ in range(chance.randrange(1, 9))) if i > len(TEXTS) else ""
            if 0 < i <= len(TEXTS):
                text = TEXTS[i - 1]
            encoding = tokenizer.encode(text)
            cases.append({
                "text": text, "ids": encoding.ids, "offsets": [list(pair) for pair in encoding.offsets],
                "plain": tokenizer.encode(text, add_special_tokens=False).ids,
                "decoded": tokenizer.decode(encoding.ids, skip_special_tokens=False) if encoding.ids else "",
                "skipped": tokenizer.decode(encoding.ids, skip_special_tokens=True) if encoding.ids else ""})
        (folder / name / "tokenizer.json").write_text(document, encoding="utf-8")
        with open(folder / name / "cases.json", "w", encoding="utf-8") as file:
            file.write("[" + ",\n".join(json.dumps(case, ensure_ascii=True) for case in cases) + "]\n")


if __name__ == "__main__":
    main()
