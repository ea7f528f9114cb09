"""A small client of the Tinker API for tests of the program: the standard library only, and no retries."""

import http.client
import json
import time

# Longer than any result takes, and several polls long.
PATIENCE = 150


class Refused(Exception):
    """An answer other than 200 and 204."""

    def __init__(self, status, text):
        super().__init__(f"{status} {text[:500]}")
        self.status = status


class Late(Exception):
    """A result that does not come."""


class Api:
    """One kept connection to a server on 127.0.0.1. `OSError` and `HTTPException` mean that the server is gone."""

    def __init__(self, port, timeout=60):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)

    def close(self):
        self.connection.close()

    def call(self, method, path, body=None):
        text = None if body is None else json.dumps(body)
        self.connection.request(method, "/api/v1/" + path, text,
                                {"X-API-Key": "tml-test", "Content-Type": "application/json"})
        answer = self.connection.getresponse()
        text = answer.read().decode()
        if answer.status not in (200, 204):
            raise Refused(answer.status, text)
        return json.loads(text) if text else None

    def post(self, path, body):
        return self.call("POST", path, body)

    def result(self, promised):
        """Waits for the result of a request."""
        limit = time.monotonic() + PATIENCE
        while time.monotonic() < limit:
            found = self.post("retrieve_future", {"request_id": promised["request_id"]})
            if found.get("type") != "try_again":
                return found
        raise Late(f"the result of {promised['request_id']} did not come within {PATIENCE} s")

    def session(self):
        return self.post("create_session", {"tags": [], "sdk_version": "0.36.0"})["session_id"]

    def model(self, session, number=0, base="tinkxx/tiny"):
        made = self.post("create_model", {"session_id": session, "model_seq_id": number, "base_model": base,
                                          "lora_config": {"rank": 2, "seed": 1}})
        return self.result(made)["model_id"]

    def sampler(self, session, number=0, **weights):
        chosen = {"session_id": session, "sampling_session_seq_id": number, **weights}
        return self.post("create_sampling_session", chosen)["sampling_session_id"]


def sample_of(sampler, number, tokens=(97, 98), samples=1, **params):
    return {"sampling_session_id": sampler, "seq_id": number, "num_samples": samples,
            "prompt": {"chunks": [{"type": "encoded_text", "tokens": list(tokens)}]},
            "sampling_params": {"seed": 5, "stop": [], **params}}


def pass_of(model, number, rows=1, length=2):
    tokens = [97 + i % 26 for i in range(length + 1)]
    datum = {"model_input": {"chunks": [{"type": "encoded_text", "tokens": tokens[:-1]}]},
             "loss_fn_inputs": {"target_tokens": {"data": tokens[1:], "dtype": "int64"},
                                "weights": {"data": [1.0] * length, "dtype": "float32"}}}
    return {"forward_backward_input": {"data": [datum] * rows, "loss_fn": "cross_entropy"}, "model_id": model,
            "seq_id": number}
