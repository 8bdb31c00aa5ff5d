"""What tests of pages in a browser share: filling in a form, and reading the tables."""

import numpy as np

import dpexplain as dpx


def settle(page):
    """Wait until what was typed has been computed and drawn."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def enter(page, domain, record):
    """Fill in the form as a person would, finding each field by its label."""
    for feature in domain.features:
        field, value = page.get_by_label(feature.name, exact=True), record[feature.name]
        if isinstance(feature, dpx.Numeric):
            field.fill(str(value))
        elif isinstance(feature, dpx.Binary):
            field.set_checked(value)
        else:
            field.select_option(label=str(value))
    settle(page)


def numbers_of(page, selector, width):
    """Values and errors of a table at full precision, in order of features or columns."""
    rows = page.eval_on_selector_all(
        f"{selector} tbody tr", "rows => rows.map((row) => [row.dataset.index, row.dataset.value, row.dataset.error])"
    )
    ordered = sorted((int(i), float(value), float(error)) for i, value, error in rows)
    assert [i for i, _, _ in ordered] == list(range(width))
    return np.array([one[1:] for one in ordered]).T
