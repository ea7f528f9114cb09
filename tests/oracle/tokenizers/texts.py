"""Texts on which tokenizers go wrong, the same ones for the same seed."""

import random
import unicodedata

# A sentence or two in each of the scripts, written for this purpose.
PROSE = [
    "The night train to the coast was late again, so we drank tea and didn't complain. It's what they'd do, isn't it?",
    "À la fin de l'été, l'élève naïf où cœur et œuvre se mêlent a dit : « Ça suffit ! » Ils n'ont pas répondu.",
    "Größe, Straße, Übermut: Im März saß der Bäcker müde auf der Bank und aß Käse. „Schön“, rief er.",
    "Trên đường về nhà, chúng tôi ghé quán nhỏ ăn phở và uống cà phê sữa đá, trời mưa rất to.",
    "İstanbul'da ığdır ağacının gölgesinde çay içtik; şoför güldü, yağmur dindi ve yola çıktık.",
    "Поезд пришёл поздно вечером, и на перроне никого не было. Ёлка стояла у входа, снег шёл тихо.",
    "Η θάλασσα ήταν ήρεμη το πρωί, κι ο ψαράς έλεγε ιστορίες για τον παππού του. ΟΔΥΣΣΕΥΣ, σοφός!",
    "وصل القطار متأخرا في المساء، وكان المطر ينزل بهدوء. قال الرجل: «مَرْحَبًا»، ثم ابتسم.",
    "הרכבת הגיעה באיחור, והילדים שתו תה חם. שָׁלוֹם, אמרה סבתא, בואו הביתה.",
    "रेलगाड़ी देर से आई, इसलिए हमने चाय पी और कहानियाँ सुनीं। क्षमा कीजिए, क्या समय हुआ है?",
    "ট্রেনটি দেরিতে এল, তাই আমরা চা খেলাম আর গল্প করলাম। বৃষ্টি থামল সন্ধ্যায়।",
    "ரயில் தாமதமாக வந்தது, அதனால் நாங்கள் தேநீர் குடித்தோம். மழை நின்றது, வானம் தெளிந்தது.",
    "రైలు ఆలస్యంగా వచ్చింది, కాబట్టి మేము టీ తాగి కబుర్లు చెప్పుకున్నాము.",
    "รถไฟมาช้าอีกแล้ว เราจึงดื่มชาและเล่าเรื่องกันจนฝนหยุดตกในตอนเย็น น้ำใสมาก",
    "ລົດໄຟມາຊ້າ ພວກເຮົາຈຶ່ງດື່ມຊາ ແລະເລົ່ານິທານໃຫ້ກັນຟັງ",
    "រថភ្លើងមកយឺត ដូច្នេះយើងផឹកតែ ហើយនិយាយរឿងគ្នា។",
    "ရထားနောက်ကျသဖြင့် ကျွန်ုပ်တို့ လက်ဖက်ရည်သောက်ပြီး ပုံပြင်ပြောကြသည်။",
    "მატარებელმა დაიგვიანა, ამიტომ ჩაი დავლიეთ და ამბები მოვყევით.",
    "Գնացքը ուշացավ, և մենք թեյ խմեցինք ու պատմություններ պատմեցինք։",
    "ባቡሩ ዘግይቶ መጣ፤ ስለዚህ ሻይ ጠጣን እና ተረት አወራን።",
    "기차가 늦게 와서 우리는 차를 마시며 이야기를 나눴다. 비가 그치자 하늘이 맑아졌다!",
    "電車が遅れたので、お茶を飲みながらおしゃべりをしました。ガッツポーズ、ｶﾀｶﾅ、１２３。",
    "火车晚点了，我们一边喝茶一边聊天。雨停之后，天空变得很清澈，孩子们笑了起来。",
    "火車誤點，我們喝著茶談天說地。龜、鬱、𠮷野家、㐂、豈更車。",
    "དུས་ཚོད་ཕྱིས་པས་ང་ཚོས་ཇ་བཏུང་ནས་སྒྲུང་བཤད།",
    "දුම්රිය ප්‍රමාද විය, ඒ නිසා අපි තේ බීලා කතා කළා.",
    "ᠭᠠᠯᠲᠤ ᠲᠡᠷᠭᠡ ᠬᠣᠵᠢᠮᠳᠠᠪᠠ",
    "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ ᎣᏏᏲ",
]

CODE = [
    "def mean(values: list[float]) -> float:\n    \"\"\"Of a list.\"\"\"\n    total = 0.0\n    for v in values:\n"
    "        total += v  # \u00b5s\n    return total / max(1, len(values))\n\n\nprint(f\"{mean([1, 2.5]):>8.3f}\")\n",
    "#include <vector>\n\ntemplate <class T>\nT const& at(std::vector<T> const& v, std::size_t i) {\n"
    "\treturn v.at(i); // may throw\n}\nint main() { return at<int>({0x1F, 1'000, 0b11}, 2) >>= 1; }\r\n",
    "fn main() {\n    let xs: Vec<u64> = (0..10).map(|x| x * x).collect();\n    println!(\"{:?} {}\", xs, xs.len());\n"
    "    match xs.get(3) { Some(&n) if n > 8 => {}, _ => unreachable!() }\n}\n",
    "const load = async (url) => {\n  const { data, ...rest } = await (await fetch(`${url}?q=${1 + 1}`)).json();\n"
    "  return data?.items ?? [];\n};\nexport default load; // !== ===\n",
    "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tch := make(chan int, 3)\n\tgo func() { defer close(ch); ch <- 1 }()\n"
    "\tfor v := range ch {\n\t\tfmt.Printf(\"%d\\n\", v)\n\t}\n}\n",
    "public final class Main {\n    private static final Map<String, List<Integer>> CACHE = new HashMap<>();\n"
    "    @Override public String toString() { return \"x\" + CACHE.size(); }\n}\n",
    "SELECT u.id, COUNT(*) AS n\n  FROM users AS u LEFT JOIN orders o ON o.user_id = u.id\n WHERE u.name LIKE '%a''b%'\n"
    " GROUP BY 1 HAVING n >= 10; -- all of them\n",
    "#!/usr/bin/env bash\nset -euo pipefail\nfor f in \"$@\"; do [[ -f $f ]] && wc -l <\"$f\" | tee -a \"${LOG:-/dev/null}\"; done\n",
    "<!doctype html>\n<div class=\"a b\" data-x='1'>&nbsp;&lt;p&gt;<br/></div>\n<style>.a>b{margin:0 .5em!important}</style>\n",
    "{\"name\": \"x\", \"list\": [1, -2.5e-10, true, null], \"nested\": {\"k\\u00e9y\": \"va\\\\lue\\n\"}}\n",
    "main :: IO ()\nmain = mapM_ print $ takeWhile (< 100) [x ^ 2 | x <- [1 ..], odd x] >>= \\y -> [y, -y]\n",
    "\\begin{align*}\n  \\int_0^{\\infty} e^{-x^2}\\,dx &= \\frac{\\sqrt{\\pi}}{2} \\\\\n\\end{align*} % done\n",
]

EMOJI = ["😀", "👍🏽", "👩‍💻", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "🇯🇵🇧🇷", "1️⃣", "#️⃣", "❤️", "❤", "🧑🏿‍🚀", "🫠", "☃︎", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "\u200d", "\ufe0f", "🏽", "©️", "™"]
COMBINING = [*map(chr, range(0x300, 0x370)), "\u0591", "\u05bc", "\u064b", "\u0651", "\u093c", "\u094d", "\u0e49", "\u3099",
             "\u309a", "\u20dd", "\u1dc4", "\ufe20", "\u0345", "\u0f71", "\u0f72", "\u1037", "\U0001d165"]
# What normalization forms change, alone or beside each other.
CHANGING = ["é", "e\u0301", "Å", "\u212b", "ﬁ", "ｱﾞ", "½", "\u1e9b\u0323", "ǆ", "가", "\u1100\u1161", "\u1100\u1161\u11a8", "\u11a8",
            "각", "\u0958", "\u0344", "豈", "\ufa1e", "①", "㌔", "\u2126", "ẞ", "İ", "ŉ", "\u0f73", "\u0f75", "\u2adc", "\U0001d15e",
            "\u0cca", "\u0b94", "\u1b06", "\u037e", "\u0387", "\u1fef", "\u2000", "\u3000", "ϓ", "ﷺ", "\u115f", "\u1160"]
CONTROL = [*map(chr, range(0x20)), "\x7f", *map(chr, range(0x80, 0xa1)), "\u00ad", "\u180e", "\u200b", "\u200c", "\u200d", "\u200e",
           "\u2028", "\u2029", "\u202a", "\u202e", "\u2060", "\u2066", "\u2069", "\ufeff", "\ufff9", "\ufffc", "\ufffd", "\ufffe",
           "\uffff", "\U000e0001", "\U000e0100", "\U0010ffff", "\ue000"]
SPACES = [" ", "\t", "\n", "\r\n", "\r", "\v", "\f", "\x1c", "\x1f", "\x85", "\u00a0", "\u1680", "\u2003", "\u200a", "\u2028",
          "\u2029", "\u202f", "\u205f", "\u3000", "▁", "\u2581\u2581", "Ġ", "Ċ"]
SMALL = ["'s", "'S", "'re", "'LL", "’s", "'ſ", "n't", "'", "''", "...", "!?", "--", "//", "/\n", "http://a.b/c?d=e&f=%20", "a@b.co", "1234567",
         "3.14159", "1,000,000", "٣٤٥", "१२३", "Ⅷ", "²³", "㊿", "0x1F", "CamelCaseWord", "snake_case", "ALLCAPS", "x", "É", "ñandú",
         "<0x0A>", "<0xFF>", "<unk>", "<s>", "</s>", "[MASK]", "<|im_start|>", "<|endoftext|>", "<bos>", "<0x41>", "##ing"]


def valid_characters():
    """All but surrogates, which no text can hold."""
    return [*range(0xd800), *range(0xe000, 0x110000)]


class Texts:
    """`special` are the tokens of the tokenizer that is looked at."""

    def __init__(self, seed, special):
        self.random = random.Random(seed)
        self.special = special or ["<|endoftext|>"]
        # Assigned characters of all planes, of which there are a sixth as many as of others.
        self.assigned = [c for c in valid_characters() if unicodedata.category(chr(c)) not in ("Cn", "Co", "Cs")]
        self.kinds = [self.prose, self.prose, self.code, self.code, self.emoji, self.combining, self.changing,
                      self.control, self.spaces, self.specials, self.specials, self.unicode, self.any_unicode,
                      self.broken, self.small, self.long_word, self.mixture, self.mixture]

    def make(self, count):
        out = ["", " ", "\n", "a", "\x00", "  a", "a  ", "\ufeff"]
        while len(out) < count:
            out.append(self.random.choice(self.kinds)())
        return out[:count]

    def some(self, items, least, most):
        return [self.random.choice(items) for _ in range(self.random.randint(least, most))]

    def prose(self):
        texts = self.some(PROSE, 1, 6)
        if self.random.random() < 0.5:  # words in another order: other neighbours
            words = " ".join(texts).split(" ")
            self.random.shuffle(words)
            texts = [" ".join(words[:self.random.randint(1, 60)])]
        return self.random.choice([" ", "\n", "\n\n", "  ", ""]).join(texts)

    def code(self):
        lines = "".join(self.some(CODE, 1, 3)).splitlines(keepends=True)
        if self.random.random() < 0.5:
            self.random.shuffle(lines)
        indent = self.random.choice(["", "", "\t", "  ", " " * self.random.randint(1, 40)])
        return "".join(indent + line for line in lines[:self.random.randint(1, 30)])

    def emoji(self):
        return self.random.choice(["", " ", "a"]).join(self.some(EMOJI, 1, 20))

    def combining(self):
        return "".join(letter + "".join(self.some(COMBINING, 0, 4))
                       for letter in self.some("aeioucnszAEOÅΩи ا あ가한क ", 1, 30))

    def changing(self):
        return "".join(self.some(CHANGING + COMBINING[:12] + ["a", " ", "\u0308", "\u0327"], 1, 30))

    def control(self):
        return "".join(self.some(CONTROL + ["a", "b ", " c", "1"], 1, 40))

    def spaces(self):
        parts = [self.random.choice(SPACES) * self.random.choice([1, 1, 2, 3, 7, 8, 16, 40, self.random.randint(1, 300)])
                 for _ in range(self.random.randint(1, 8))]
        return "".join(part + self.random.choice(["", "", "x", "the", "1", ".", "中"]) for part in parts)

    def specials(self):
        parts = []
        for _ in range(self.random.randint(1, 8)):
            token = self.random.choice(self.special)
            change = self.random.random()
            if change < 0.1:
                token = token[:self.random.randint(0, len(token))]
            elif change < 0.15:
                token = token.swapcase()
            elif change < 0.2:
                at = self.random.randint(0, len(token))
                token = token[:at] + self.random.choice([" ", "\u0301", "x", token]) + token[at:]
            parts.append(self.random.choice(["", " ", "\n", "a", "  ", "user", "é", "\t"]) + token)
        return "".join(parts) + self.random.choice(["", " ", " end", "\n"])

    def unicode(self):
        return "".join(map(chr, self.some(self.assigned, 1, 60)))

    def any_unicode(self):
        points = (self.random.choice([0x80, 0x800, 0x10000, 0x110000]) for _ in range(self.random.randint(1, 40)))
        values = (self.random.randrange(limit) for limit in points)
        return "".join(chr(v) for v in values if not 0xd800 <= v < 0xe000)

    def broken(self):
        return self.random.randbytes(self.random.randint(1, 120)).decode("utf-8", "replace")

    def small(self):
        return self.random.choice(["", " ", "\n"]).join(self.some(SMALL, 1, 20))

    def long_word(self):
        piece = self.random.choice(["a", "ab", "the", "=", "-", "中", "한", "é", "0", "xyz", "\u0e01", "!?", "A", "aA"])
        if self.random.random() < 0.3:
            return "".join(self.some("ABCDEFGHabcdefgh0123+/", 50, 800))
        return piece * self.random.choice([10, 33, 100, 500, self.random.randint(1, 1500)])

    def mixture(self):
        return "".join(self.random.choice(self.kinds)()[:self.random.randint(1, 200)]
                       for _ in range(self.random.randint(2, 6)))
