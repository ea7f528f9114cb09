"""The calls of same_calls.cpp, made with the official SDK; prints the same lines. MODEL is the argument."""

import sys

import tinker
from tinker import types


def tokens(text):
    return list(text.encode())


def datum(before, after):
    everything = tokens(before) + tokens(after)
    return types.Datum(model_input=types.ModelInput.from_ints(everything[:-1]), loss_fn_inputs={
        "target_tokens": everything[1:], "weights": [0.0] * (len(before) - 1) + [1.0] * len(after)})


def show(name, numbers):
    print(name, *numbers)


def show_pass(name, output):
    show(f"{name}.loss", [output.metrics["loss:sum"]])
    for one in output.loss_fn_outputs:
        show(f"{name}.logprobs", one["logprobs"].data)


service = tinker.ServiceClient()
trainer = service.create_lora_training_client(base_model=sys.argv[1], rank=4, seed=3)
PROMPT = "Q: What is 2 + 3?\nA:"
batch = [datum(PROMPT, " 5\n"), datum("The dog", " runs in the garden.")]
show_pass("before", trainer.forward(batch, "cross_entropy").result())
for _ in range(3):
    passed = trainer.forward_backward(batch, "cross_entropy")
    stepped = trainer.optim_step(types.AdamParams(learning_rate=1e-3, beta1=0.9, beta2=0.95, eps=1e-8))
    show_pass("pass", passed.result())
    stepped.result()
sampler = trainer.save_weights_and_get_sampling_client()
drawn = sampler.sample(types.ModelInput.from_ints(tokens(PROMPT)), num_samples=3, include_prompt_logprobs=True,
                       sampling_params=types.SamplingParams(max_tokens=12, seed=11, stop="\n", temperature=0.8)).result()
for sequence in drawn.sequences:
    show("tokens", sequence.tokens)
    show("sampled", sequence.logprobs)
show("prompt", [value or 0 for value in drawn.prompt_logprobs])
