"""The published page in a real browser: it computes what Python computes, contacts no one, and everybody can use it."""

import json
from contextlib import contextmanager

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.core import weights
from dpexplain.demo.people import DOMAIN
from dpexplain.demo.people import people as people_of
from dpexplain.privacy.relation import Neighbours
from dpexplain.release.page import publish
from page_support import enter, numbers_of, settle
from release_support import StandIn

pytestmark = pytest.mark.slow

RECORDS = [
    dict(age=40, hours=45, education="degree", work="private", trade="science", region="north", married=True, city=True),
    dict(age=17, hours=0, education="none", work="none", trade="care", region="islands", married=False, city=False),
    dict(
        age=63.25, hours=99, education="doctorate", work="self-employed", trade="office", region="west", married=True, city=False
    ),
]
HOSTILE = "</script><img src=x onerror=\"document.title='owned'\"><b>&amp;"


@pytest.fixture(scope="module")
def people():
    return StandIn(DOMAIN, seed=3, rows=512)


@pytest.fixture
def page_opener(browser, tmp_path):
    """Publishes and opens a release, and fails the test if the page complains or asks for anything but its own file."""

    @contextmanager
    def open_page(release, title="A page", outcome="an income above the threshold", blocked=(), **options):
        path = publish(release, tmp_path / "page.html", title=title, outcome=outcome)
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        page, complaints = context.new_page(), []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request", lambda request: complaints.append(request.url) if not request.url.startswith(("file:", "data:")) else None
        )
        page.goto(path.as_uri())
        page.wait_for_selector("#table tbody tr")
        settle(page)
        yield page
        context.close()
        assert len(complaints) == len(blocked), complaints
        assert all(expected in complaint for expected, complaint in zip(blocked, complaints, strict=True)), complaints

    return open_page


def changes(domain, record, values, errors):
    """What would change: a category from the record's own value to another, yes to no; the error of a difference is at most the sum."""
    changed, spread = values.copy(), errors.copy()
    point = domain.encode_query(record)
    for feature, block in zip(domain.features, domain.blocks, strict=True):
        part = slice(block.start, block.stop)
        if block.kind == "one-hot":
            own = block.start + int(point[part].argmax())
            changed[part], spread[part] = values[part] - values[own], errors[part] + errors[own]
            changed[own] = spread[own] = 0
        elif isinstance(feature, dpx.Binary) and point[block.start] == 1:
            changed[part] = -values[part]
    return changed, spread


def agrees(page, release, record):
    values, errors = numbers_of(page, "#table", release.domain.width)
    expected, spread = release.explain(record)
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(errors, spread, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("weight", "radius"),
    [
        (weights.Stable(1.0), 1.0),
        (weights.Stable(2.0), 0.3),
        (weights.Gaussian(0.8), 5.0),
        (weights.Window(1.3), 1.0),
        (weights.Inverse(1.0), 1.0),
    ],
    ids=lambda value: str(value),
)
def test_the_browser_computes_what_python_computes(page_opener, weight, radius):
    release = StandIn(DOMAIN, seed=5, rows=512, weight=weight, radius=radius)
    with page_opener(release) as page:
        for record in RECORDS:
            enter(page, DOMAIN, record)
            agrees(page, release, record)


def test_both_the_sphere_and_the_inside_of_the_ball_were_met():
    sizes = [np.linalg.norm(StandIn(DOMAIN, seed=5, rows=512, radius=radius).explain(RECORDS[0])[0]) for radius in (0.3, 5.0)]
    assert sizes[0] == pytest.approx(0.3)
    assert sizes[1] < 4.9


def test_moving_a_slider_redraws_bars_table_and_summary(page_opener, people):
    with page_opener(people) as page:
        enter(page, DOMAIN, RECORDS[0])
        bars = page.locator("#chart .bar")
        before = bars.evaluate_all("bars => bars.map((bar) => bar.getAttribute('width'))"), numbers_of(page, "#table", 20)[0]
        page.get_by_label("age, slider").focus()
        for _ in range(20):
            page.keyboard.press("ArrowRight")
        settle(page)
        assert page.get_by_label("age", exact=True).input_value() == "60"
        after = bars.evaluate_all("bars => bars.map((bar) => bar.getAttribute('width'))"), numbers_of(page, "#table", 20)[0]
        assert before[0] != after[0]
        assert np.abs(before[1] - after[1]).max() > 1e-3
        agrees(page, people, {**RECORDS[0], "age": 60})
        highest = """rows => rows.sort((a, b) => new DOMMatrix(a.style.transform).f - new DOMMatrix(b.style.transform).f)[0]
            .querySelector(".name").textContent"""  # rows stay where they are in the document, and are moved by their style
        strongest = page.eval_on_selector_all("#chart .row", highest)
        page.wait_for_function("name => document.getElementById('summary').textContent.includes(name)", arg=strongest)


def reading_of(value, error):
    if value == error == 0:
        return "none"
    return "uncertain" if abs(value) <= 2 * error else "positive" if value >= 0 else "negative"


def test_bars_are_ranked_coloured_and_cut(page_opener, people):
    with page_opener(people) as page:
        enter(page, DOMAIN, RECORDS[0])
        for choice, count in (("5", 5), ("12", 12), ("all", 20)):
            page.get_by_label("Show", exact=True).select_option(choice)
            page.wait_for_function("count => document.querySelectorAll('#chart .row').length === count", arg=count)
        values, errors = changes(DOMAIN, RECORDS[0], *people.explain(RECORDS[0])[:2])
        order = np.argsort(-np.abs(values), kind="stable")
        read = """rows => rows.map((row) => [new DOMMatrix(row.style.transform).f, +row.dataset.index, row.classList[1]])
            .sort((a, b) => a[0] - b[0]).map((row) => row.slice(1))"""
        drawn = page.eval_on_selector_all("#chart .row", read)
        expected = [reading_of(values[i], errors[i]) for i in order]
        assert drawn == [[int(i), reading] for i, reading in zip(order, expected, strict=True)]
        assert {"uncertain", "positive", "negative", "none"} == set(expected)  # none: the category that the record has


def test_it_can_be_used_by_keyboard_alone(page_opener, people):
    with page_opener(people) as page:
        enter(page, DOMAIN, RECORDS[0])
        page.evaluate("document.activeElement.blur()")
        reached = []
        for _ in range(40):
            page.keyboard.press("Tab")
            reached.append(
                page.evaluate(
                    "[document.activeElement.id, document.activeElement.type, getComputedStyle(document.activeElement).outlineStyle]"
                )
            )
        kinds = {kind for _, kind, _ in reached}
        assert {"button", "number", "range", "select-one", "checkbox"} <= kinds
        assert {"theme", "print", "count", "show-table"} <= {name for name, _, _ in reached}
        assert all(outline != "none" for name, kind, outline in reached if kind)
        page.get_by_label("married", exact=True).focus()
        page.keyboard.press("Space")
        page.get_by_label("work", exact=True).focus()
        page.keyboard.press("ArrowDown")
        settle(page)
        agrees(page, people, {**RECORDS[0], "married": False, "work": "public"})


def test_a_value_outside_the_domain_is_refused_not_clamped(page_opener, people):
    with page_opener(people) as page:
        enter(page, DOMAIN, RECORDS[0])
        before = numbers_of(page, "#table", 20)[0]
        for wrong in ("120", "", "16.999"):
            page.get_by_label("age", exact=True).fill(wrong)
            settle(page)
            assert page.get_by_label("age", exact=True).get_attribute("aria-invalid") == "true"
            assert page.get_by_text("Enter a number from 17 to 97.").is_visible()
            assert page.locator("#answer .stale-note").is_visible()
            np.testing.assert_array_equal(numbers_of(page, "#table", 20)[0], before)
        page.get_by_label("age", exact=True).fill("41")
        settle(page)
        assert not page.locator("#answer .stale-note").is_visible()
        agrees(page, people, {**RECORDS[0], "age": 41})


def test_examples_are_said_to_be_synthetic_and_fill_the_form(page_opener, people):
    with page_opener(people) as page:
        assert page.get_by_text("all synthetic").is_visible()
        chips, seen = page.locator("#presets button"), set()
        assert chips.count() == 4
        for i in range(4):
            chips.nth(i).click()
            settle(page)
            assert chips.nth(i).get_attribute("aria-pressed") == "true"
            seen.add(page.get_by_label("age", exact=True).input_value() + page.get_by_label("trade", exact=True).input_value())
        assert len(seen) >= 3


def test_hostile_names_and_values_stay_text(page_opener):
    domain = dpx.Domain(
        [
            dpx.Numeric(HOSTILE, 0, 1),
            dpx.Categorical("c", values=[HOSTILE, "<!--<script>", "\u2028"]),
            dpx.Ordinal("{{script}}", levels=["</style>", "<svg onload=alert(1)>"]),
            dpx.Binary("__proto__", values=("<i>", "&lt;")),
        ]
    )
    with page_opener(StandIn(domain, rows=64), title=HOSTILE, outcome=HOSTILE) as page:
        page.click("#show-table")
        settle(page)
        assert page.title() == HOSTILE
        assert page.locator("h1").text_content() == HOSTILE
        assert page.locator("img, b:not(#strip b), i, style:not(head style)").count() == 0
        assert page.locator("script").count() == 2
        told = page.locator("#table tbody th").all_text_contents()
        assert [told.count(feature.name) for feature in domain.features] == [feature.width for feature in domain.features]


def test_even_a_mistake_could_not_run_markup(page_opener, people):
    with page_opener(people, blocked=["TrustedHTML"]) as page:
        attempt = "markup => { try { document.body.insertAdjacentHTML('beforeend', markup); return 'ran'; } catch (error) { return error.name; } }"
        assert page.evaluate(attempt, "<p>") == "TypeError"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_follows_the_system_and_can_be_switched(page_opener, people, scheme):
    with page_opener(people, color_scheme=scheme) as page:
        other = {"light": "dark", "dark": "light"}[scheme]
        assert brightness(page) == scheme
        page.get_by_role("button", name=f"Switch to {other} colours").click()
        settle(page)
        assert brightness(page) == other
        page.emulate_media(media="print")
        assert page.evaluate("getComputedStyle(document.body).color") == "rgb(27, 32, 38)"


def brightness(page):
    red = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]")
    return "light" if int(red) > 127 else "dark"


NAMELESS = """() => [...document.querySelectorAll('input, select, button, svg[role=img]')].filter((node) =>
    !(node.labels?.length && node.labels[0].textContent.trim()) && !node.getAttribute('aria-label') && !(node.tagName === 'BUTTON' && node.textContent.trim())
).map((node) => node.outerHTML)"""
DUPLICATES = "() => { const ids = [...document.querySelectorAll('[id]')].map((node) => node.id); return ids.filter((id, i) => ids.indexOf(id) !== i); }"
DANGLING = """() => ['for', 'aria-labelledby', 'aria-describedby', 'aria-controls'].flatMap((name) => [...document.querySelectorAll(`[${name}]`)]
    .map((node) => node.getAttribute(name)).filter((id) => !document.getElementById(id)))"""
FAINT = """() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const linear = (c) => ((c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const ground = (node) => {
    if (node === null) return [255, 255, 255];
    const colour = parse(getComputedStyle(node).backgroundColor);
    return colour[3] === 0 ? ground(node.parentElement) : colour;
  };
  return [...document.querySelectorAll('body *')].filter((node) => node.checkVisibility() && !['SCRIPT', 'OPTION'].includes(node.tagName)
      && [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim())).map((node) => {
    const style = getComputedStyle(node);
    const [a, b] = [light(parse(node.namespaceURI.endsWith('svg') ? style.fill : style.color)), light(ground(node))].sort();
    return [(b + 0.05) / (a + 0.05), node.textContent.slice(0, 40)];
  }).filter(([ratio]) => ratio < 4.5);
}"""  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_is_named_and_readable(page_opener, people, scheme):
    with page_opener(people, color_scheme=scheme, reduced_motion="reduce") as page:
        page.get_by_label("Show", exact=True).select_option("all")
        page.click("#show-table")
        page.get_by_label("age", exact=True).fill("1")
        settle(page)
        assert page.evaluate(NAMELESS) == []
        assert page.evaluate(DUPLICATES) == []
        assert page.evaluate(DANGLING) == []
        page.get_by_label("age", exact=True).fill("30")
        settle(page)
        assert page.evaluate(FAINT) == []
        assert page.get_attribute("html", "lang") == "en"
        assert [page.locator(tag).count() for tag in ("main", "h1", "header", "footer")] == [1, 1, 1, 1]
        assert page.locator("[role=status][aria-live=polite]").count() == 1


def test_the_table_is_there_for_screen_readers_and_for_eyes_on_demand(page_opener, people):
    with page_opener(people) as page:
        table = page.get_by_role("table", name="Effects on an income above the threshold")
        assert table.get_by_role("row").count() == 21
        assert [cell.text_content() for cell in table.get_by_role("columnheader").all()] == [
            "Feature",
            "Change",
            "Effect",
            "± 2 errors",
            "Reading",
        ]
        button = page.get_by_role("button", name="Show the numbers")
        button.click()
        page.wait_for_function("document.getElementById('table').getBoundingClientRect().height > 200")
        assert page.get_by_role("button", name="Hide the numbers").get_attribute("aria-expanded") == "true"


def test_the_guarantee_is_told_in_plain_words_and_exactly(page_opener, people):
    with page_opener(people) as page:
        text = page.get_by_role("region", name="What is guaranteed").inner_text()
        assert str(people.guarantee) in text
        assert "one in 1,000,000" in text


def test_what_is_not_private_says_so(page_opener):
    guarantee = dpx.Guarantee(0.25, 1e-6, Neighbours(), private=False, note="made for a reproduction.")
    with page_opener(StandIn(DOMAIN, rows=64, guarantee=guarantee)) as page:
        assert "NOT differentially private" in page.get_by_role("note").inner_text()
        assert "Nothing is guaranteed" in page.get_by_role("region", name="What is guaranteed").inner_text()


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_it_fits_any_width(page_opener, people, width):
    with page_opener(people, viewport={"width": width, "height": 800}) as page:
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        outside = "texts => texts.filter((t) => { const b = t.getBoundingClientRect(); return b.left < 0 || b.right > innerWidth; }).length"
        assert page.eval_on_selector_all("#chart text", outside) == 0
        strip = page.locator("#strip")
        if width < 896:
            page.wait_for_function("!document.getElementById('strip').classList.contains('away')")
            assert strip.is_visible()
        else:
            assert not strip.is_visible()


def test_it_prints(page_opener, people):
    with page_opener(people) as page:
        page.emulate_media(media="print")
        assert not page.locator(".tools").is_visible()
        assert not page.get_by_label("age, slider").is_visible()
        assert page.locator("#chart").is_visible()
        document = page.pdf(format="A4")
        assert document.startswith(b"%PDF")
        assert document.count(b"/Type /Page\n") == 1  # the record, its bars and the guarantee on one sheet


def test_calm_where_motion_is_unwelcome(page_opener, people):
    with page_opener(people, reduced_motion="reduce") as page:
        assert page.evaluate("getComputedStyle(document.querySelector('#chart .bar')).transitionDuration") in ("0s", "1e-05s")


def test_many_columns_get_a_searchable_list(page_opener):
    domain = dpx.Domain.encoded(60, bounds=(-1.5, 2.5))
    release = StandIn(domain, rows=300, radius=0.5)
    with page_opener(release) as page:
        from playwright.sync_api import expect

        page.get_by_label("Find a feature").fill("x4")
        expect(page.locator(".field:visible")).to_have_count(11)  # x4 and x40 to x49
        page.get_by_label("Find a feature").fill("")
        record = np.random.default_rng(0).uniform(-1.5, 2.5, 60).round(3)
        enter(page, domain, {f"x{i}": value for i, value in enumerate(record.tolist())})
        agrees(page, release, record)


def test_four_hundred_columns_are_redrawn_at_every_step_of_a_slider(page_opener):
    release = StandIn(dpx.Domain.encoded(400), rows=4096)
    with page_opener(release) as page:
        steps = """async () => {
            const box = document.querySelector('input[type=number]');
            const seen = [];
            for (let i = 0; i < 6; i++) {
              box.value = String(0.05 + i / 20);
              box.dispatchEvent(new Event('input'));
              await new Promise(requestAnimationFrame);  // runs after the page's own, which was asked for first
              seen.push(document.querySelector('#table tbody tr').dataset.value);
            }
            return new Set(seen).size; }"""
        assert page.evaluate(steps) == 6


def test_a_real_release_from_private_rows_to_the_page(page_opener):
    columns, rich = people_of(4000, seed=2)
    data = dpx.PrivateData(columns, DOMAIN, labels=2 * rich - 1)
    release = dpx.release(data, dpx.Budget(epsilon=2.0, delta=1e-6))
    with page_opener(release) as page:
        for record in RECORDS:
            enter(page, DOMAIN, record)
            explanation = release.explain(record)
            values, errors = numbers_of(page, "#table", DOMAIN.width)
            np.testing.assert_allclose(values, explanation.values, rtol=0, atol=1e-9)
            np.testing.assert_allclose(errors, explanation.error, rtol=0, atol=1e-9)
        assert str(release.guarantee) in page.get_by_role("region", name="What is guaranteed").inner_text()


def test_the_payload_in_the_page_is_exact(people, tmp_path):
    text = publish(people, tmp_path / "page.html").read_text(encoding="utf-8")
    data = json.loads(text.split('id="data">')[1].split("</script>")[0])
    assert data["domain"] == DOMAIN.to_dict()
    assert data["names"] == list(DOMAIN.names)
