"""Chat templates: what transformers offers them, and nothing that reaches out of the sandbox."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.chat_template import render
from engine.tokenizer import ByteTokenizer, load_tokenizer
from tests.helpers.model_folders import save_byte_level_tokenizer

MESSAGES = [{"role": "user", "content": "a <b> & é"}, {"role": "assistant", "content": "c"}]


def test_messages_special_tokens_and_the_opening_of_a_reply() -> None:
    template = (
        "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
        "{% if add_generation_prompt %}[assistant]{% endif %}"
    )
    tokens = {"bos_token": "<s>"}
    assert render(template, MESSAGES, tokens, reply=True) == "<s>[user]a <b> & é[assistant]c[assistant]"
    assert render(template, MESSAGES, tokens, reply=False) == "<s>[user]a <b> & é[assistant]c"


def test_blocks_leave_no_blank_lines() -> None:
    template = "{% for m in messages %}\n    {% if m.role == 'user' %}\n{{ m.content }}\n    {% endif %}\n{% endfor %}"
    assert render(template, MESSAGES, {}, reply=False) == "a <b> & é\n"


def test_json_keeps_its_letters() -> None:
    assert render("{{ messages[0] | tojson }}", MESSAGES, {}, reply=False) == json.dumps(
        MESSAGES[0], ensure_ascii=False
    )


def test_loops_may_break_and_dates_be_asked() -> None:
    assert render("{% for m in messages %}{{ m.role }}{% break %}{% endfor %}", MESSAGES, {}, reply=False) == "user"
    assert len(render("{{ strftime_now('%Y') }}", [], {}, reply=False)) == 4


def test_a_template_s_own_refusal_is_passed_on() -> None:
    template = "{{ raise_exception('Roles must alternate') }}"
    with pytest.raises(ValueError, match="refuses these messages: Roles must alternate"):
        render(template, MESSAGES, {}, reply=True)


@pytest.mark.parametrize("attack", ["{{ ''.__class__.__mro__ }}", "{{ messages.append(1) }}"])
def test_the_sandbox_holds(attack: str) -> None:
    with pytest.raises(ValueError, match="refuses these messages"):
        render(attack, MESSAGES, {}, reply=True)


def test_templates_are_found_where_folders_keep_them(tmp_path: Path) -> None:
    save_byte_level_tokenizer(tmp_path)
    assert not load_tokenizer(tmp_path, ()).has_chat_template
    save_byte_level_tokenizer(tmp_path, chat_template="in the settings {{ eos_token }}")
    assert load_tokenizer(tmp_path, ()).render_chat(MESSAGES) == "in the settings <eos>"
    named = [{"name": "tool_use", "template": "tools"}, {"name": "default", "template": "by name"}]
    save_byte_level_tokenizer(tmp_path, chat_template=named)
    assert load_tokenizer(tmp_path, ()).render_chat(MESSAGES) == "by name"
    (tmp_path / "chat_template.jinja").write_text("in its own file", "utf-8")
    assert load_tokenizer(tmp_path, ()).render_chat(MESSAGES) == "in its own file"


def test_a_model_without_template_says_what_to_do() -> None:
    with pytest.raises(ValueError, match="no chat template; give it plain text"):
        ByteTokenizer().render_chat(MESSAGES)
