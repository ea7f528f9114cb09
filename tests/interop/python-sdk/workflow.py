"""A whole workflow of the official SDK against a server. Runs inside an environment that has the SDK.

    workflow.py MODEL [custom-loss]

The server is found by TINKER_BASE_URL and TINKER_API_KEY. A token of MODEL has to be a byte.
"""

import io
import json
import math
import sys
import tarfile
import urllib.request

import tinker
from tinker import types

VERSION = tuple(int(part) for part in tinker.__version__.split(".")[:2])
MODEL = sys.argv[1]
PROMPT = "Q: What is the capital of Peru?\nA:"
ADAM = types.AdamParams(learning_rate=2e-3, beta1=0.9, beta2=0.95, eps=1e-8)


def step(what):
    print(f"  {what}", flush=True)


def tokens(text):
    return list(text.encode())


def prompt(text=PROMPT):
    return types.ModelInput.from_ints(tokens(text))


def datum(question, answer):
    before, after = tokens(question), tokens(answer)
    everything = before + after
    return types.Datum(
        model_input=types.ModelInput.from_ints(everything[:-1]),
        loss_fn_inputs={
            "target_tokens": everything[1:],
            "weights": [0.0] * (len(before) - 1) + [1.0] * len(after),
        },
    )


def refused(what, call, *words):
    """The SDK's own error for `call`, which has to hold these words."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 (each version has its own classes)
        text = f"{type(error).__module__}.{type(error).__name__}: {error}"
        assert type(error).__module__.startswith("tinker"), text
        for word in words:
            assert word in text, text
        step(f"{what}: refused as {type(error).__name__}")
        return
    raise AssertionError(f"{what} was not refused")


def close(a, b, tolerance=1e-4):
    return len(a) == len(b) and all(abs(x - y) <= tolerance for x, y in zip(a, b))


service = tinker.ServiceClient(user_metadata={"recipe": "interop"})
names = [model.model_name for model in service.get_server_capabilities().supported_models]
assert MODEL in names, names
step(f"capabilities: {names}")

trainer = service.create_lora_training_client(base_model=MODEL, rank=8, seed=1)
info = trainer.get_info()
assert info.model_data.model_name == MODEL and info.is_lora and info.lora_rank == 8, info
step(f"created {info.model_id}")

# --- training ------------------------------------------------------------------------------------
batch = [datum(PROMPT, " I think it is Lima!\n"), datum("Q: What does a cow say?\nA:", " I think it is moo!\n")]
only = trainer.forward(batch, "cross_entropy").result()
assert len(only.loss_fn_outputs) == 2 and math.isfinite(only.metrics["loss:sum"]), only.metrics
losses = []
for _ in range(8):
    passed = trainer.forward_backward(batch, "cross_entropy")  # both are submitted before either is read
    stepped = trainer.optim_step(ADAM)
    result = passed.result()
    stepped.result()
    losses.append(result.metrics["loss:sum"])
    for one, output in zip(batch, result.loss_fn_outputs):
        logprobs = output["logprobs"]
        assert logprobs.dtype == "float32" and len(logprobs.data) == one.model_input.length
assert abs(losses[0] - only.metrics["loss:sum"]) < 1e-3 * abs(losses[0]), (losses[0], only.metrics)
assert losses[-1] < 0.7 * losses[0], losses
step(f"eight steps: loss {losses[0]:.3f} -> {losses[-1]:.3f}")

many = [datum("ab", "c") for _ in range(1030)]  # more than goes into one request
chunked = trainer.forward(many, "cross_entropy").result()
assert len(chunked.loss_fn_outputs) == len(many)
first = chunked.loss_fn_outputs[0]["logprobs"].data
assert all(close(output["logprobs"].data, first) for output in chunked.loss_fn_outputs)
step(f"{len(many)} data in several chunks")

advantages = types.Datum(
    model_input=types.ModelInput.from_ints(tokens("abc")),
    loss_fn_inputs={"target_tokens": tokens("bcd"), "logprobs": [-1.0, -1.0, -1.0], "advantages": [0.0, 1.0, -1.0]},
)
for loss in ("importance_sampling", "ppo"):
    assert math.isfinite(trainer.forward([advantages], loss).result().metrics["loss:sum"])
step("importance_sampling and ppo")

# --- saving and loading --------------------------------------------------------------------------
saved = trainer.save_state("half").result().path
assert saved.startswith("tinker://") and saved.endswith("/weights/half"), saved


def go_on(client):
    """Two more steps, and what they lost."""
    lost = []
    for _ in range(2):
        passed = client.forward_backward(batch, "cross_entropy")
        client.optim_step(ADAM).result()
        lost.append(passed.result().metrics["loss:sum"])
    return lost


through = go_on(trainer)
if hasattr(service, "create_training_client_from_state_with_optimizer"):
    resumed = service.create_training_client_from_state_with_optimizer(saved)
else:
    resumed = service.create_lora_training_client(base_model=MODEL, rank=8, seed=9)
    resumed.load_state_with_optimizer(saved).result()
assert go_on(resumed) == through, "a loaded run does not go on as the one that was saved"
step("saved, and loaded with its optimizer: goes on bit for bit")

# --- sampling ------------------------------------------------------------------------------------
weights = trainer.save_weights_for_sampler("taught").result().path
assert weights.endswith("/sampler_weights/taught"), weights
taught = service.create_sampling_client(model_path=weights)
greedy = types.SamplingParams(max_tokens=40, temperature=0.0, stop=["\n"])
answer = taught.sample(prompt(), num_samples=1, sampling_params=greedy, include_prompt_logprobs=True).result()
sequence = answer.sequences[0]
text = bytes(sequence.tokens).decode()
assert text.endswith("\n") and sequence.stop_reason == "stop", (text, sequence.stop_reason)
assert len(sequence.logprobs) == len(sequence.tokens) and all(value <= 0 for value in sequence.logprobs)
assert answer.prompt_logprobs[0] is None and len(answer.prompt_logprobs) == len(PROMPT)
step(f"sampled {text.strip()!r}")

base = service.create_sampling_client(base_model=MODEL)
lesson = prompt(PROMPT + " I think it is Lima!\n")
untaught, learnt = (sum(one.compute_logprobs(lesson).result()[len(PROMPT):]) for one in (base, taught))
assert learnt > untaught + 20, (untaught, learnt)
step(f"the lesson went from {untaught:.1f} to {learnt:.1f} nats")
alone = taught.compute_logprobs(prompt()).result()
assert close(alone[1:], answer.prompt_logprobs[1:])
whole = tokens(PROMPT) + list(sequence.tokens)
scored = taught.compute_logprobs(types.ModelInput.from_ints(whole)).result()
assert close(scored[len(PROMPT):], sequence.logprobs), "sample and compute_logprobs disagree"
same = trainer.save_weights_and_get_sampling_client()
passed = trainer.forward([datum(PROMPT, bytes(sequence.tokens).decode())], "cross_entropy").result()
from_forward = list(passed.loss_fn_outputs[0]["logprobs"].data)[len(PROMPT) - 1:]
from_sampler = same.compute_logprobs(types.ModelInput.from_ints(whole)).result()[len(PROMPT):]
assert close(from_forward, from_sampler), "forward and compute_logprobs disagree"
step("logprobs of sample, forward and compute_logprobs agree")

hot = types.SamplingParams(max_tokens=12, temperature=1.0, seed=7)
one, two = (base.sample(prompt(), num_samples=3, sampling_params=hot).result() for _ in range(2))
assert [s.tokens for s in one.sequences] == [s.tokens for s in two.sequences] and len(one.sequences) == 3
by_token = types.SamplingParams(max_tokens=64, temperature=0.0, stop=[10])
assert list(base.sample(prompt(), num_samples=1, sampling_params=by_token).result().sequences[0].tokens)[-1] == 10
pending = [base.sample(prompt(), num_samples=1, sampling_params=hot) for _ in range(100)]
assert all(len(future.result().sequences) == 1 for future in pending)
step("seeds, several samples, stops by token, a hundred at once")
if VERSION >= (0, 25):
    top = base.sample(prompt(), num_samples=1, sampling_params=greedy, include_prompt_logprobs=True,
                      topk_prompt_logprobs=3).result()
    assert top.topk_prompt_logprobs[0] is None and len(top.topk_prompt_logprobs[1]) == 3
    step("top-k logprobs of the prompt")

# --- the rest ------------------------------------------------------------------------------------
rest = tinker.RestClient() if hasattr(tinker, "RestClient") and VERSION >= (0, 34) else service.create_rest_client()
run_id = saved.removeprefix("tinker://").split("/")[0]
run = rest.get_training_run(run_id).result()
assert run.base_model == MODEL and run.training_run_id == run_id, run
assert run_id in [one.training_run_id for one in rest.list_training_runs().result().training_runs]
listed = {one.tinker_path for one in rest.list_checkpoints(run_id).result().checkpoints}
assert {saved, weights} <= listed, listed
assert saved in {one.tinker_path for one in rest.list_user_checkpoints().result().checkpoints}
weights_info = rest.get_weights_info_by_tinker_path(saved).result()
assert weights_info.base_model == MODEL and weights_info.lora_rank == 8, weights_info
rest.publish_checkpoint_from_tinker_path(saved).result()
rest.unpublish_checkpoint_from_tinker_path(saved).result()
step(f"listed {len(listed)} checkpoints of {run_id}")

if hasattr(rest, "get_checkpoint_archive_url_from_tinker_path"):
    url = rest.get_checkpoint_archive_url_from_tinker_path(weights).result().url
    with urllib.request.urlopen(url) as answer, tarfile.open(fileobj=io.BytesIO(answer.read())) as archive:
        files = {name.split("/")[-1] for name in archive.getnames()}
    assert {"adapter_config.json", "adapter_model.safetensors", "checkpoint_complete"} <= files, files
    step(f"downloaded {sorted(files)}")
else:
    external = trainer.save_weights_external("download").result().path
    found = {}
    for name, url in rest.get_external_weights_urls(external).result().urls.items():
        with urllib.request.urlopen(url) as answer:
            found[name] = answer.read()
    config = json.loads(next(data for name, data in found.items() if name.endswith("adapter_config.json")))
    assert config["r"] == 8 and "lora_alpha" in config, config
    step(f"downloaded {sorted(found)}")
rest.delete_checkpoint_from_tinker_path(saved).result()
assert saved not in {one.tinker_path for one in rest.list_checkpoints(run_id).result().checkpoints}
step("deleted a checkpoint")

# --- bad input -----------------------------------------------------------------------------------
refused("a model that is not there", lambda: service.create_lora_training_client(base_model="no/such"), "no/such")
refused("a checkpoint that is deleted", lambda: service.create_training_client_from_state(saved))
short = types.Datum(model_input=types.ModelInput.from_ints(tokens("abc")),
                    loss_fn_inputs={"target_tokens": tokens("b"), "weights": [1.0]})
refused("targets that are too few", lambda: trainer.forward_backward([short], "cross_entropy").result(), "target_tokens")
beyond = types.Datum(model_input=types.ModelInput.from_ints([99999]),
                     loss_fn_inputs={"target_tokens": [1], "weights": [1.0]})
refused("a token beyond the vocabulary", lambda: trainer.forward_backward([beyond], "cross_entropy").result(), "vocabulary")
if VERSION >= (0, 25):  # 0.7 checks the name itself
    refused("a loss that is not known", lambda: trainer.forward_backward(batch, "no_such_loss").result(), "no_such_loss")
endless = types.SamplingParams(max_tokens=10**6)
refused("more tokens than the model has places for",
        lambda: base.sample(prompt(), num_samples=1, sampling_params=endless).result(), "max_tokens")
assert trainer.forward(batch, "cross_entropy").result().metrics["loss:sum"] > 0
step("and the model still works")

if "custom-loss" in sys.argv:
    def own_loss(data, logprobs):
        return -sum(part.sum() for part in logprobs), {"parts": float(len(data))}

    custom = trainer.forward_backward_custom(batch, own_loss).result()
    trainer.optim_step(ADAM).result()
    assert custom.metrics["parts"] == 2, custom.metrics
    step("a loss of one's own")
if hasattr(service, "close"):
    service.close("success").result()
    step("closed its session")
print(f"tinker {tinker.__version__}: the whole workflow")
