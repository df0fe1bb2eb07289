"""The race that home lets a reader save: opened as a file, it moves from nothing to the engine's last counts."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser

from views.lab.race_animation import INPUTS, race_animation

AT = """when => {
    const moves = document.getAnimations();
    for (const move of moves) when === "start" ? (move.pause(), move.currentTime = 0) : move.finish();
    const counts = [...document.querySelectorAll("text")].filter(text => ["", "most"].includes(text.classList.value));
    return counts.filter(text => getComputedStyle(text).visibility === "visible").map(text => text.textContent);
}"""


def test_the_saved_animation_begins_empty_and_ends_with_the_engines_counts(browser: Browser, tmp_path: Path) -> None:
    race = race_animation()
    file = tmp_path / "contiguous_or_paged_animated.svg"
    file.write_text(race.animation, "utf-8")
    context = browser.new_context(reduced_motion="no-preference")
    page = context.new_page()
    page.goto(file.as_uri())
    assert page.evaluate(AT, "start") == ["0", "at once, at most", "now 0 running, 0 waiting"] * 2
    last, expected = race.last_step, []
    for lane in (race.contiguous, race.paged):
        now = f"now {lane.num_running[last]} running, {lane.num_waiting[last]} waiting"
        expected += [str(lane.most_running), "at once, at most", now]
    assert page.evaluate(AT, "end") == expected
    assert [expected[0], expected[3]] == ["4", "15"]
    context.close()


def test_the_saved_picture_and_the_animation_under_reduced_motion_show_the_end(
    browser: Browser, tmp_path: Path
) -> None:
    race = race_animation()
    shown = []
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    for name, text in (("still", race.still), ("animation", race.animation)):
        file = tmp_path / f"{name}.svg"
        file.write_text(text, "utf-8")
        page.goto(file.as_uri())
        assert page.evaluate("document.getAnimations().length") == 0
        shown.append(page.evaluate(AT, "end"))
    context.close()
    assert shown[0] == shown[1]
    assert INPUTS.num_requests > 15 == int(shown[0][3])
