"""Conversations and responses of all kinds, from a seed: ordinary ones, and those that nobody would write."""

import json

WORDS = ["the", "answer", "is", "42", "weather", "in", "Paris", "résumé", "naïve", "日本語", "Привет", "مرحبا", "नमस्ते",
         "😀", "👩‍👩‍👧", "é", "\u00a0", "\u3000", "\u200b", "don't", "User:", "Assistant:", "a<b", "x > y", "{}",
         "[1, 2]", '"quoted"', "back\\slash", "``` code ```", "tab\there", "1.5e3", "None", "True", "\x1c", "\u0085"]
TAGS = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "<|im_start|>", "<|im_end|>",
        "<|eot_id|>", "<|endoftext|>", "<|user|>", "<|observation|>", "<｜User｜>", "<｜end▁of▁sentence｜>",
        "<|start|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>", "｜DSML｜", "[gMASK]", "<arg_key>",
        "<|im_middle|>", "\n\nUser:", "<function=f>", "</function>", "<|tool_call_begin|>"]
NAMES = ["get_weather", "search", "f", "calc-2", "ns.tool", "größe", "a_b"]
VALUES = ["", "text", "two\nlines", " padded ", "\nleading", "ünïcode 😀", "3", "true", "null", "1.0", '{"a": 1}', "</parameter>",
          'say "hi"', "a\\b", "it's", 0, 1, -7, 3.5, 1e20, 1e-7, 0.1, 100000000000000000000, True, False, None, [], {},
          [1, "two", None], {"k": "v"}, {"nested": {"deep": [1, {"x": True}]}}, {"é": "ü"}, [0.5, -0.0]]
KEYS = ["city", "q", "n", "unit", "été", "with space", "arguments", "a.b"]


def text(draw, longest=8):
    kind = draw.random()
    if kind < 0.08:
        return ""
    if kind < 0.12:
        return draw.choice([" ", "\n", "\n\n", "\t", "\n\n\n", " \n "])
    parts = []
    for _ in range(draw.randint(1, longest)):
        parts.append(draw.choice(TAGS) if draw.random() < 0.04 else draw.choice(WORDS))
    out = draw.choice([" ", " ", " ", "\n", "\n\n", "", ". "]).join(parts)
    if draw.random() < 0.15:
        out = draw.choice(["\n", "\n\n", " ", "  ", "\n \n"]) + out
    if draw.random() < 0.15:
        out += draw.choice(["\n", "\n\n", " ", ".\n\n", "\n \n"])
    return out


def arguments(draw):
    return {draw.choice(KEYS): draw.choice(VALUES) for _ in range(draw.randint(0, 3))}


def tool_calls(draw, wild):
    calls = []
    for number in range(draw.randint(1, 3)):
        name = draw.choice(NAMES)
        content = json.dumps(arguments(draw), ensure_ascii=draw.random() < 0.5)
        if wild and draw.random() < 0.15:
            content = draw.choice(["", "[]", "3", '"text"', '"{\\"a\\": 1}"', "{bad", "null", '{"a": NaN, "b": 1E3}'])
        ids = [None, f"call_{number}", f"functions.{name}:{number}", "", "call_0"]
        call_id = draw.choice(ids[:3]) if not wild else draw.choice(ids)
        calls.append({"type": "function", "id": call_id, "function": {"name": name, "arguments": content}})
    return calls


def parts(draw, thinks, wild):
    out = []
    if thinks and draw.random() < 0.9:
        out.append({"type": "thinking", "thinking": text(draw)})
    out.append({"type": "text", "text": text(draw)})
    while draw.random() < 0.15:
        kind = "thinking" if thinks and draw.random() < 0.4 else "text"
        out.append({"type": kind, kind: text(draw, 3)})
    if wild and draw.random() < 0.1:
        out.insert(draw.randint(0, len(out)), {"type": "image", "image": "https://example.org/cat.png"})
    if wild and draw.random() < 0.1:
        return []
    return out


def assistant(draw, wild):
    kind = draw.random()
    if kind < 0.35:
        content = text(draw)
    elif kind < 0.45:
        content = draw.choice(["<think>", "<think>\n", ""]) + text(draw, 3) + "</think>" + text(draw)
    elif kind < 0.5:
        content = "<think>" + text(draw, 3)
    else:
        content = parts(draw, draw.random() < 0.7, wild)
    message = {"role": "assistant", "content": content}
    return message


def answers(draw, calls, wild):
    out = []
    for call in calls:
        if wild and draw.random() < 0.15:
            continue
        message = {"role": "tool", "content": text(draw)}
        if draw.random() < 0.2:
            message["content"] = [{"type": "text", "text": text(draw)}]
        if call["id"] is not None and draw.random() < 0.9:
            message["tool_call_id"] = call["id"]
        if draw.random() < 0.7:
            message["name"] = call["function"]["name"]
        out.append(message)
    if draw.random() < 0.4:
        draw.shuffle(out)
    if wild and out and draw.random() < 0.2:
        out.append(dict(draw.choice(out)))
    return out


def user(draw, wild):
    content = text(draw)
    if draw.random() < 0.15:
        content = [{"type": "text", "text": content}]
    if wild and draw.random() < 0.15:
        content = parts(draw, draw.random() < 0.2, wild)
    return {"role": "user", "content": content}


def conversation(draw):
    """Messages; about one in four is out of the ordinary."""
    wild = draw.random() < 0.25
    out = []
    if draw.random() < 0.5:
        content = text(draw) if draw.random() < 0.85 else [{"type": "text", "text": text(draw)}]
        out.append({"role": "system", "content": content})
    for _ in range(draw.choice([0, 1, 1, 1, 2, 2, 3])):
        if not (wild and draw.random() < 0.2):
            out.append(user(draw, wild))
        if draw.random() < 0.35:
            message = assistant(draw, wild)
            message["tool_calls"] = tool_calls(draw, wild)
            out += [message, *answers(draw, message["tool_calls"], wild)]
            if draw.random() < 0.3:
                out.append(user(draw, wild))
        out.append(assistant(draw, wild))
        if wild and draw.random() < 0.1:
            out[-1]["tool_calls"] = []
        if wild and draw.random() < 0.15:
            out.insert(draw.randint(0, len(out)), {"role": draw.choice(["system", "system", "developer", "critic", "tool"]),
                                                  "content": text(draw)})
        if wild and draw.random() < 0.1:
            draw.shuffle(out)
    if out and draw.random() < 0.3:
        out.pop()
    elif out and draw.random() < 0.1:
        out[-1]["tool_calls"] = tool_calls(draw, wild)
    return out


def schema(draw, depth=0):
    kind = draw.choice(["string", "string", "integer", "number", "boolean", "array", "object", "enum", "any_of", "union",
                        "empty", "ref"])
    out = {}
    if kind in ("string", "integer", "number", "boolean"):
        out["type"] = kind
        if kind == "string" and draw.random() < 0.3:
            out["maxLength"], out["pattern"] = 10, "^a+$"
        if kind in ("integer", "number") and draw.random() < 0.3:
            out["minimum"], out["maximum"] = 0, 1.5
    elif kind == "array":
        out["type"] = "array"
        if depth < 2 and draw.random() < 0.8:
            out["items"] = schema(draw, depth + 1)
        if draw.random() < 0.3:
            out["minItems"] = 2
    elif kind == "object" and depth < 2:
        out = parameters(draw, depth + 1)
    elif kind == "enum":
        out = {"type": "string", "enum": ["celsius", "fahrenheit", "ü"]}
        if draw.random() < 0.3:
            out = {"enum": [1, "two", None, True, 2.5]}
        if draw.random() < 0.2:
            out = {"type": ["string", "null"], "enum": ["a", None]}
    elif kind == "any_of" and depth < 2:
        out = {draw.choice(["anyOf", "anyOf", "oneOf"]): [schema(draw, 2), {"type": "null"}]}
        if "oneOf" in out:
            out["type"] = "string"
    elif kind == "union":
        out["type"] = draw.choice([["string", "null"], ["integer", "object"], ["array"]])
    elif kind == "ref" and draw.random() < 0.5:
        return {"$ref": draw.choice(["#", "#/$defs/Node", "#/$defs/Missing"])}
    elif kind != "empty":
        out["type"] = "string"
    if draw.random() < 0.5:
        out["description"] = draw.choice(["The city", "two\nlines", "  padded  ", "Größe 😀", "blank\n\nline"])
    if draw.random() < 0.2:
        out["default"] = draw.choice(VALUES)
    if draw.random() < 0.1:
        out["title"] = "A title"
    if draw.random() < 0.1:
        out["examples"] = ["one", 2, {"three": None}]
    if draw.random() < 0.1:
        out["nullable"] = True
    return out


def parameters(draw, depth=0):
    names = draw.sample(["location", "unit", "n", "Zeta", "alpha", "été"], draw.randint(0, 4))
    out = {"type": "object", "properties": {name: schema(draw, depth) for name in names}}
    if draw.random() < 0.6:
        out["required"] = draw.sample(names, draw.randint(0, len(names)))
    if draw.random() < 0.2:
        out["additionalProperties"] = draw.choice([True, False, {"type": "string"}, {}])
    if depth == 0 and draw.random() < 0.3:
        out["$defs"] = {"Node": {"type": "object", "description": "A node", "properties": {"next": {"$ref": "#/$defs/Node"}}}}
    if draw.random() < 0.2:
        out["description"] = "All of it"
    return out


def tools(draw):
    out = []
    for name in draw.sample(NAMES, draw.randint(0, 3)):
        tool = {"name": name, "description": draw.choice(["Gets it", "", "line\nline", "Größe 😀", " padded "]),
                "parameters": parameters(draw) if draw.random() < 0.9 else {}}
        if draw.random() < 0.15:
            tool["strict"] = True
        if draw.random() < 0.1:
            tool["defer_loading"] = draw.choice([True, False])
        if draw.random() < 0.1:
            tool["extra"] = draw.choice(VALUES)
        if draw.random() < 0.1:
            tool = dict(reversed(tool.items()))
        out.append(tool)
    return out


# Responses -----------------------------------------------------------------------------------------------------


def broken(draw, content):
    """A text with a few characters missing, twice there or exchanged."""
    for _ in range(draw.randint(1, 2)):
        if not content:
            return content
        at = draw.randrange(len(content))
        size = draw.randint(1, 6)
        kind = draw.random()
        if kind < 0.5:
            content = content[:at] + content[at + size:]
        elif kind < 0.75:
            content = content[:at] + content[at:at + size] + content[at:]
        else:
            content = content[:at] + draw.choice(['"', "{", "}", ",", ":", "\\", "\n", "<", "é", "\\u12", "]"]) + content[at:]
    return content


def call_text(draw, renderer):
    name, given = draw.choice(NAMES), arguments(draw)
    dumped = json.dumps(given, ensure_ascii=draw.random() < 0.5)
    if draw.random() < 0.2:
        dumped = broken(draw, dumped)
    plain = lambda value: value if isinstance(value, str) else json.dumps(value)  # noqa: E731
    if renderer.startswith("deepseekv3"):
        return f"<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{dumped}<｜tool▁call▁end｜>"
    if renderer.startswith("deepseekv4"):
        inside = "\n".join(
            f'<｜DSML｜ parameter name="{key}" string="{"true" if isinstance(value, str) else draw.choice(["false", "true"])}">'
            f"{plain(value)}</｜DSML｜ parameter>" for key, value in given.items())
        return f'<｜DSML｜ invoke name="{name}">\n{inside}\n</｜DSML｜ invoke>'
    if renderer.startswith("kimi"):
        number = draw.choice([":0", ":12", "", ":x", ":٣", ": 1"])
        return (f"<|tool_call_begin|>{draw.choice(['', ' ', chr(10)])}{draw.choice(['functions.', ''])}{name}{number}"
                f"<|tool_call_argument_begin|>{draw.choice(['', ' '])}{dumped}<|tool_call_end|>")
    if renderer.startswith("gpt_oss"):
        return f" to=functions.{name}<|channel|>commentary <|constrain|>json<|message|>{dumped}"
    if renderer.startswith("glm"):
        inside = "".join(f"<arg_key>{key}</arg_key>{draw.choice(['', chr(10)])}<arg_value>{plain(value)}</arg_value>"
                         for key, value in given.items())
        return f"<tool_call>{name}{draw.choice(['', chr(10)])}{inside}</tool_call>"
    if draw.random() < 0.5 and not renderer.startswith(("qwen3_d", "qwen3_i", "qwen3_v")) and renderer != "qwen3":
        inside = "\n".join(f"<parameter={key}>\n{plain(value)}\n</parameter>" for key, value in given.items())
        return f"<tool_call>\n<function={name}>\n{inside}\n</function>\n</tool_call>"
    named = json.dumps({"name": draw.choice([name, name, name, 3]), "arguments": draw.choice([given, given, given, [], "x"]),
                        **({"id": draw.choice(["call_1", 7])} if draw.random() < 0.3 else {})})
    return f"<tool_call>\n{broken(draw, named) if draw.random() < 0.2 else named}\n</tool_call>"


def calls_text(draw, renderer):
    calls = [call_text(draw, renderer) for _ in range(draw.randint(1, 2))]
    if renderer.startswith("deepseekv3"):
        return "<｜tool▁calls▁begin｜>" + "".join(calls) + "<｜tool▁calls▁end｜>"
    if renderer.startswith("deepseekv4"):
        return draw.choice(["\n\n", ""]) + "<｜DSML｜ calls>\n" + "\n".join(calls) + "\n</｜DSML｜ calls>"
    if renderer.startswith("kimi"):
        spelling = draw.choice(["calls", "calls", "call"])
        return f"<|tool_{spelling}_section_begin|>" + "".join(calls) + f"<|tool_{spelling}_section_end|>"
    if renderer.startswith("gpt_oss"):
        return "<|call|><|start|>assistant".join(calls[:1]) + draw.choice(["<|call|>", "<|call|>", ""])
    return draw.choice(["\n", "\n\n", ""]).join(calls)


def response_text(draw, renderer):
    if renderer.startswith("gpt_oss"):
        out = ""
        if draw.random() < 0.6:
            out += f"<|channel|>analysis<|message|>{text(draw)}<|end|><|start|>assistant"
        if draw.random() < 0.2:
            out += f"<|channel|>commentary<|message|>{text(draw)}<|end|><|start|>assistant"
        if draw.random() < 0.5:
            return out + calls_text(draw, renderer)
        return out + f"<|channel|>{draw.choice(['final', 'final', 'other', ''])}<|message|>{text(draw)}"
    out = ""
    kind = draw.random()
    if kind < 0.4:
        out += draw.choice(["<think>", "<think>\n"]) + text(draw) + draw.choice(["</think>", "\n</think>\n\n", "</think>\n"])
    elif kind < 0.6:
        out += text(draw) + draw.choice(["</think>", "\n</think>\n\n"])
    out += text(draw)
    while draw.random() < 0.4:
        out += draw.choice(["", "\n", "\n\n"]) + calls_text(draw, renderer) + draw.choice(["", "", "\n", text(draw, 2)])
    return out


def responses(draw, renderer, tokenizer, stops):
    """Lists of tokens, as a sampler may give them."""
    out = []
    for _ in range(2):
        content = response_text(draw, renderer)
        if draw.random() < 0.25:
            content = broken(draw, content)
        tokens = tokenizer.encode(content)
        if isinstance(stops, str):
            tokens += tokenizer.encode(draw.choice([stops, stops, "", stops + stops]))
            if tokenizer.eos_token_id is not None and draw.random() < 0.3:
                tokens.append(tokenizer.eos_token_id)
        elif draw.random() < 0.8:
            tokens.append(draw.choice(stops))
        if draw.random() < 0.05:
            tokens += tokens
        if draw.random() < 0.1:
            tokens = tokens[:draw.randint(0, len(tokens))]
        if draw.random() < 0.05:
            tokens = [draw.randrange(0, tokenizer.tokenizer.get_vocab_size()) for _ in range(draw.randint(0, 12))]
        out.append(tokens)
    return out


TRAIN = ["last_assistant_message", "last_assistant_turn", "all_assistant_messages", "all_messages", "all_tokens",
         "all_user_and_system_messages", "customized"]


def request(draw, renderer, tokenizer, stops):
    messages = conversation(draw)
    train = draw.sample(TRAIN[:6], 2) + (["customized"] if draw.random() < 0.05 else [])
    if draw.random() < 0.2:
        for message in messages:
            message["trainable"] = draw.random() < 0.5
        train = ["customized"] + (draw.sample(TRAIN[:6], 1) if draw.random() < 0.1 else [])
    out = {"renderer": renderer, "date": "2025-03-09", "messages": messages, "train": train,
           "responses": responses(draw, renderer, tokenizer, stops)}
    if draw.random() < 0.3:
        out["tools"] = tools(draw)
        out["system_prompt"] = text(draw) if draw.random() < 0.6 else ""
    if draw.random() < 0.1:
        out["prefill"] = text(draw, 3)
    if draw.random() < 0.05:
        out["role"] = draw.choice(["user", "system", "tool"])
    if draw.random() < 0.15 and not renderer.startswith(("role_colon", "llama3", "gpt_oss")):
        out["strip"] = draw.random() < 0.5
    if renderer.startswith("deepseekv3") and draw.random() < 0.2:
        out["system_role_as_user"] = True
    return out
