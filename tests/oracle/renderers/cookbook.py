"""What the cookbook's renderers make of a request of compare.py; runs inside the environment that it makes."""

import json
import sys
import types
import warnings


class Tensor(list):
    """As much of a tensor as the renderers use; the real thing is a download of gigabytes."""

    def __getitem__(self, key):
        found = list.__getitem__(self, key)
        return Tensor(found) if isinstance(key, slice) else found


def stand_in_for_torch():
    torch = types.ModuleType("torch")
    torch.__version__ = "2.10.0"
    torch.Tensor = Tensor
    torch.tensor = Tensor
    torch.zeros = lambda size: Tensor([0.0] * size)
    torch.cat = lambda parts: Tensor([value for part in parts for value in part])
    sys.modules["torch"] = torch
    # Only asked for its version, to warn of one that is broken.
    transformers = types.ModuleType("transformers")
    transformers.__version__ = "5.5.4"
    sys.modules["transformers"] = transformers


stand_in_for_torch()
warnings.simplefilter("ignore")

import logging  # noqa: E402

logging.disable(logging.CRITICAL)

from tinker_cookbook import model_info, renderers  # noqa: E402
from tinker_cookbook.renderers import base, gpt_oss  # noqa: E402
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers  # noqa: E402

MERGES = [(b"\n", b"\n"), (b">", b"\n"), (b">", b"\n\n"), (b"\n\n", b"\n\n"), (b".", b"\n"), (b".", b"\n\n"),
          (b"t", b"h"), (b"th", b"e"), (b" ", b"the"), (b"i", b"n"), (b"e", b"r"), (b"U", b"s"), (b"Us", b"er"),
          (b"User", b":"), (b" ", b"a"), (b"<", b"/"), (b"t", b"o"), (b"to", b"o"), (b"too", b"l"), (b"_", b"c"),
          (b"tool", b"_c"), (b"{", b'"'), (b'"', b"}"), (b'"', b":"), (b"\xe4", b"\xb8"), (b"\xf0", b"\x9f"),
          (b"\xf0\x9f", b"\x98"), (b" ", b" "), (b"  ", b"  "), (b"\xef\xbd", b"\x9c")]
MERGES.insert(-1, (b"\xef", b"\xbd"))

# Special tokens, and those that are only added, of each family.
FAMILIES = {
    "plain": ([], [], None, None),
    "plain_eos": (["<bos>", "<eos>"], [], "<bos>", "<eos>"),
    "llama3": (["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"], [],
               "<|begin_of_text|>", "<|eot_id|>"),
    "qwen": (["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>"],
             ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"],
             None, "<|im_end|>"),
    "deepseek": (["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"],
                 ["<｜User｜>", "<｜Assistant｜>", "<｜System｜>", "<think>", "</think>", "｜DSML｜",
                  "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>",
                  "<｜tool▁call▁end｜>", "<｜tool▁sep｜>", "<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>",
                  "<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"],
                 "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"),
    "kimi": (["[BOS]", "[EOS]", "<|im_end|>", "<|im_user|>", "<|im_assistant|>", "<|start_header_id|>",
              "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>",
              "<|tool_call_argument_begin|>", "<|tool_call_end|>", "<|im_system|>", "<|im_middle|>"],
             ["<think>", "</think>"], "[BOS]", "[EOS]"),
    "gpt_oss": (["<|startoftext|>", "<|endoftext|>", "<|return|>", "<|constrain|>", "<|channel|>", "<|start|>",
                 "<|end|>", "<|message|>", "<|call|>"], [], "<|startoftext|>", "<|return|>"),
    "glm": (["<|endoftext|>", "[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>"],
            ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>",
             "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"], None, "<|endoftext|>"),
}

DATE = "2025-03-09"


def family_of(renderer):
    for start, family in (("role_colon", "plain_eos"), ("llama3", "llama3"), ("qwen", "qwen"), ("nemotron", "qwen"),
                          ("deepseek", "deepseek"), ("kimi", "kimi"), ("gpt_oss", "gpt_oss"), ("glm", "glm")):
        if renderer.startswith(start):
            return family
    raise ValueError(renderer)


def letters():
    """The characters by which byte-level vocabularies write bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    out = {byte: chr(byte) for byte in plain}
    for byte in range(256):
        if byte not in out:
            out[byte] = chr(256 + len(out) - len(plain))
    return out


class SmallTokenizer:
    """The tokenizer of tests/support/small_tokenizer.hpp, by the library that models come with."""

    def __init__(self, family):
        special, added, self.bos_token, eos = FAMILIES[family]
        letter = letters()
        spell = lambda data: "".join(letter[byte] for byte in data)  # noqa: E731
        vocabulary = {letter[byte]: byte for byte in range(256)}
        for left, right in MERGES:
            vocabulary.setdefault(spell(left + right), len(vocabulary))
        self.tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[(spell(a), spell(b)) for a, b in MERGES]))
        self.tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        self.tokenizer.decoder = decoders.ByteLevel()
        # In the order of `lines`, which is that of the ids.
        self.tokenizer.add_special_tokens([AddedToken(text, normalized=False) for text in special])
        self.tokenizer.add_tokens([AddedToken(text, normalized=False) for text in added])
        self.family = family
        self.eos = eos
        self.name_or_path = family
        self.eos_token_id = None if eos is None else self.tokenizer.token_to_id(eos)
        self.encoded = {}

    def lines(self):
        """For the other side."""
        special, added, bos, eos = FAMILIES[self.family]
        out = [f"merge {a.hex()} {b.hex()}" for a, b in MERGES]
        out += [f"special {text}" for text in special] + [f"added {text}" for text in added]
        out += [f"bos {bos}"] * (bos is not None) + [f"eos {eos}"] * (eos is not None)
        return "\n".join(out) + "\n"

    def encode(self, text, add_special_tokens=True, split_special_tokens=False):
        key = (text, split_special_tokens)
        found = self.encoded.get(key)
        if found is None:
            self.tokenizer.encode_special_tokens = split_special_tokens
            found = self.tokenizer.encode(text, add_special_tokens=False).ids
            if len(self.encoded) > 200000:
                self.encoded.clear()
            self.encoded[key] = found
        return list(found)

    def decode(self, tokens):
        return self.tokenizer.decode(list(tokens), skip_special_tokens=False)

    def convert_tokens_to_ids(self, token):
        return self.tokenizer.token_to_id(token)


def to_message(plain):
    message = json.loads(json.dumps(plain))
    if "tool_calls" in message:
        message["tool_calls"] = [base.ToolCall.model_validate(call) for call in message["tool_calls"]]
    return message


def attempt(call):
    try:
        return call()
    except Exception as e:  # whatever it refuses, and whatever it trips over
        return {"error": f"{type(e).__name__}: {e}"}


def example(pair):
    return {"tokens": pair[0].to_ints(), "weights": [int(weight) for weight in pair[1]]}


def delta(piece):
    if isinstance(piece, base.StreamingMessageHeader):
        return ["header", piece.role]
    if isinstance(piece, base.StreamingTextDelta):
        return ["text", piece.text, piece.content_index]
    if isinstance(piece, base.StreamingThinkingDelta):
        return ["thinking", piece.thinking, piece.content_index]
    return ["message", base.message_to_jsonable(piece)]


def parsed(renderer, tokens):
    message, termination = renderer.parse_response(list(tokens))
    failure = base.classify_parse_failure(message, termination)
    return {"message": base.message_to_jsonable(message), "termination": str(termination),
            "failure": None if failure is None else failure[1]}


class Cookbook:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.made = {}

    def renderer(self, request):
        key = (request["renderer"], request.get("strip"), request.get("system_role_as_user"))
        if key not in self.made:
            made = renderers.get_renderer(request["renderer"], self.tokenizer)
            if "strip" in request:
                made.strip_thinking_from_history = request["strip"]
            if request.get("system_role_as_user"):
                made.system_role_as_user = True
            if isinstance(made, gpt_oss.GptOssRenderer):
                made.current_date = DATE
            self.made[key] = made
        return self.made[key]

    def answer(self, request):
        renderer = self.renderer(request)
        messages = [to_message(message) for message in request["messages"]]
        stop = renderer.get_stop_sequences()
        out = {"stop": stop[0] if isinstance(stop[0], str) else stop, "extension": renderer.has_extension_property}
        out["prompt"] = attempt(lambda: renderer.build_generation_prompt(
            messages, role=request.get("role", "assistant"), prefill=request.get("prefill")).to_ints())
        out["one"], out["many"] = {}, {}
        for name in request["train"]:
            what = base.TrainOnWhat(name)
            out["one"][name] = attempt(lambda: example(renderer.build_supervised_example(messages, what)))
            out["many"][name] = attempt(
                lambda: [example(pair) for pair in renderer.build_supervised_examples(messages, what)])
        if "tools" in request:
            out["prefix"] = attempt(lambda: [base.message_to_jsonable(message) for message in
                                             renderer.create_conversation_prefix_with_tools(
                                                 request["tools"], request.get("system_prompt", ""))])
        out["responses"] = []
        for tokens in request["responses"]:
            one = {"parsed": attempt(lambda: parsed(renderer, tokens))}
            if renderer.supports_streaming:
                one["stream"] = attempt(lambda: [delta(p) for p in renderer.parse_response_streaming(list(tokens))])
            out["responses"].append(one)
        out["openai"] = [attempt(lambda: renderer.to_openai_message(message)) for message in messages]
        return out
