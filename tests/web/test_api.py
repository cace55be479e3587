"""The JSON API, asked as the documentation says, and what guards the server."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from indel.text_repair.repairer import Repairer
from indel.web.guard import BUSY
from indel.web.models import Models
from indel.web.request_limits import LIMITS
from support.page_server import Server, page_server

PAGE = Path(__file__).parents[2] / "docs/page.md"
PATIENCE = 120.0


def ask(address: str, name: str, **fields: object) -> tuple[str, Any]:
    """The last event of a call, and its data."""
    url = f"{address}/gradio_api/call/v2/{name}"
    asked = httpx.post(url, json=fields, timeout=PATIENCE)
    assert asked.status_code == 200, asked.text
    stream = httpx.get(f"{url}/{asked.json()['event_id']}", timeout=PATIENCE).text
    event, data = re.findall(r"^event: (\w+)\ndata: (.*)$", stream, re.MULTILINE)[-1]
    return event, json.loads(data)


def answer(address: str, name: str, **fields: object) -> dict[str, Any]:
    event, data = ask(address, name, **fields)
    assert event == "complete", data
    return dict(data[0])


def documented() -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    return [block for block in blocks if block.startswith("ask ")]


@pytest.mark.parametrize("command", documented(), ids=lambda command: command.split()[1])
def test_what_the_documentation_asks_is_answered(address: str, command: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    (function,) = re.findall(r"^ask\(\) .*$", text, re.MULTILINE)
    script = f"PAGE={address}\n{function}\n{command}"
    output = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    # Whoever waits long gets heartbeats before the answer.
    assert "event: complete" in output.stdout, output.stdout
    fields = json.loads(output.stdout.partition("event: complete\ndata: ")[2])[0]
    # Every field of the answer is explained right after the command.
    explained = text.partition(command)[2].partition("```sh")[0]
    for field in fields:
        assert f"`{field}`" in explained or f"`{field}`," in explained, field


def test_five_endpoints_and_no_others(address: str) -> None:
    info = httpx.get(f"{address}/gradio_api/info", timeout=PATIENCE).json()
    assert set(info["named_endpoints"]) == {
        *("/repair", "/watch", "/fill", "/process", "/likelihood"),
    }
    assert not info["unnamed_endpoints"]
    assert len(documented()) == 5


def test_repair_is_that_of_the_library(address: str, models: Models) -> None:
    text = "Thisn <b>sentsnetne</b>\nwasstype \u202e\0 🧑‍🚀"
    found = answer(address, "repair", text=text, draws=1, strength=9, in_place=True, seed=3)
    (expected,) = Repairer(models.in_place, strength=9, draws=1, seed=3)([text])
    assert (found["original"], found["text"]) == (text, expected.text)
    assert len(found["corrections"]) == len(expected.corrections)


def test_the_same_seed_gives_the_same_trajectory(address: str) -> None:
    runs = [
        answer(address, "watch", start="hello there", t=6, seed=seed)["tokens"]
        for seed in (1, 1, 2)
    ]
    assert runs[0] == runs[1] != runs[2]
    assert "".join(runs[0][0]).replace("␣", " ") == "hello there"


def test_gaps_are_filled_and_nothing_else_changes(address: str) -> None:
    found = answer(address, "fill", text="In the {3} year {}", samples=2, particles=3, seed=1)
    assert len(found["texts"]) == len(found["gaps"]) == 2
    for text, gaps in zip(found["texts"], found["gaps"], strict=True):
        assert text == f"in the {gaps[0]} year {gaps[1]}"
        assert len(gaps[0]) == 3
    again = answer(address, "fill", text="in the {3} year", samples=1, seed=1)
    assert again["texts"][0].startswith("in the ")


def test_parts_and_steps_sum_to_the_bound(address: str) -> None:
    words = "so many words that they do not fit into one piece of text " * 4
    found = answer(address, "likelihood", text=words, chains=2)
    bits = found["bits_per_character"]
    assert sum(found["by_part"].values()) == pytest.approx(bits)
    assert sum(found["by_step"]) + found["by_part"]["length"] == pytest.approx(bits)


@pytest.mark.parametrize(
    ("name", "fields", "words"),
    [
        ("repair", {"text": "x" * 3_000}, "3,000 characters; at most 2,000"),
        ("repair", {"text": "  "}, "the text is empty"),
        ("repair", {"text": 5}, "must be text, got int"),
        ("repair", {"text": "x", "draws": 99}, "draws must lie in 1…32, got 99"),
        ("repair", {"text": "x", "strength": 99}, "strength must lie in 1…12, got 99"),
        (
            "repair",
            {"text": "x" * 2_000, "draws": 32, "strength": 12},
            "draws × strength is 768,000 and may be 125,000",
        ),
        ("repair", {"text": "x", "in_place": "no"}, "in_place must be true or false"),
        ("watch", {"model": "gpt"}, "model must be one of text8, in-place, arithmetic, got 'gpt'"),
        ("watch", {"start": "\0"}, "holds no letter"),
        ("watch", {"start": 7}, "must be text"),
        ("watch", {"model": "arithmetic", "start": "1 x"}, "whole numbers in 0…511, got 'x'"),
        ("watch", {"seed": -1}, "seed must lie in 0…"),
        ("watch", {"seed": 10**400}, "seed must lie in 0…4294967295, got a number far from it"),
        ("process", {"text": "a", "steps": 65}, "T must lie in 2…64, got 65"),
        ("process", {"text": "a", "rate": 2}, "the rate must lie in 0…1, got 2"),
        ("process", {"text": "a", "steps": 4}, "t must lie in 0…4, got 5"),
        ("fill", {"text": "a {b}"}, "'{b}' is no gap"),
        ("fill", {"text": "a, {}"}, "character ','"),
        ("fill", {"text": "{120} is too long"}, "at most 127"),
        ("fill", {"text": "a {}", "particles": 9}, "particles must lie in 1…8, got 9"),
        ("likelihood", {"text": "a" * 591}, "591 characters; at most 590"),
        ("likelihood", {"text": "a", "chains": 9}, "chains must lie in 1…8, got 9"),
    ],
)
def test_bad_requests_get_one_clear_sentence(
    address: str, name: str, fields: dict[str, object], words: str
) -> None:
    event, data = ask(address, name, **fields)
    assert event == "error"
    assert words in data["error"]
    assert "\n" not in data["error"]


def test_nothing_that_is_typed_is_logged(server: Server) -> None:
    answer(server.address, "repair", text="secretly typed", draws=1)
    ask(server.address, "repair", text="secretly typed" * 1_000)
    ask(server.address, "process", text="secretly typed", rate="secretly typed")
    assert "secret" not in server.log.read_text(encoding="utf-8")


def test_large_requests_and_uploads_are_refused(address: str) -> None:
    large = httpx.post(
        f"{address}/gradio_api/call/v2/repair",
        json={"text": "x" * LIMITS.body_bytes},
        timeout=PATIENCE,
    )
    assert large.status_code == 413
    assert "this one has 4,194,3" in large.json()["detail"]
    upload = httpx.post(f"{address}/gradio_api/upload", files={"files": b"x"}, timeout=PATIENCE)
    assert upload.status_code == 404


def test_browsers_are_told_to_load_nothing_from_elsewhere(address: str) -> None:
    page = httpx.get(address, timeout=PATIENCE)
    assert page.headers["content-security-policy"].startswith("default-src 'self'")
    assert page.headers["x-content-type-options"] == "nosniff"


def test_a_full_queue_says_so_and_others_can_still_open_the_page(tmp_path: Path) -> None:
    slow = {"text": "many words to score " * 29, "chains": 2}
    with page_server(tmp_path, waiting=2, examples=False) as server:
        url = f"{server.address}/gradio_api/call/v2/likelihood"
        # Gradio describes the API when it is first asked for it, which takes a while.
        httpx.get(f"{server.address}/gradio_api/info", timeout=PATIENCE)
        asked = [httpx.post(url, json=slow, timeout=PATIENCE) for _ in range(10)]
        busy = [response for response in asked if response.status_code == 503]
        assert busy
        assert busy[0].json()["detail"] == BUSY
        assert httpx.get(server.address, timeout=PATIENCE).status_code == 200
        first = asked[0].json()["event_id"]
        stream = httpx.get(f"{url}/{first}", timeout=PATIENCE).text
        assert "event: complete" in stream
