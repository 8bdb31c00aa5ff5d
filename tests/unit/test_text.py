"""Texts as sets of words: the tokeniser, the vocabulary, private texts that never raise, and public ones that must make sense."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import dpexplain as dpx
from dpexplain.domain.text import TextDomain, word_spans, words_of
from dpexplain.errors import DataError, DomainError, QueryError

DOMAIN = TextDomain(["good", "bad", "don't", "10", "été"])
TEXTS = ["Good, GOOD film!", "a bad one<br />don’t go", "10/10 — l'été", ""]
ENCODED = [[1, 0, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The film, the FILM!", {"the", "film"}),
        ("don't 'quoted' rock'n'roll dogs'", {"don't", "quoted", "rock'n'roll", "dogs"}),
        ("it’s", {"it's"}),
        ("one<br />two<BR>three<br/>four", {"one", "two", "three", "four"}),
        ("<br", {"br"}),
        ("_so_ 8/10 x2", {"so", "8", "10", "x2"}),
        ("Straße ŒUVRE 映画", {"straße", "œuvre", "映画"}),
        ("İ", {"i̇"}),
        ("  \n\t--- ... !", set()),
        ("\ud800 lone", {"lone"}),
    ],
)
def test_words_are_lower_case_runs_of_letters_and_digits(text, words):
    assert words_of(text) == words


def test_spans_are_where_the_words_are():
    text = "Don’t go<br />it's BAD, good."
    assert [(text[a:b], word) for a, b, word in word_spans(text)] == [
        ("Don’t", "don't"), ("go", "go"), ("it's", "it's"), ("BAD", "bad"), ("good", "good"),
    ]  # fmt: skip
    assert [word for _, _, word in DOMAIN.spans(text)] == ["don't", "bad", "good"]


@pytest.mark.parametrize(
    "rows",
    [TEXTS, tuple(TEXTS), np.array(TEXTS), np.array(TEXTS, dtype=object), pd.Series(TEXTS), pl.Series(TEXTS), pa.array(TEXTS),
     pd.Series(TEXTS, dtype="category"), pa.chunked_array([TEXTS[:1], TEXTS[1:]])],
    ids=lambda rows: type(rows).__name__,
)  # fmt: skip
def test_texts_in_any_container_become_sparse_binary_rows(rows):
    found = DOMAIN.encode(rows)
    assert sparse.issparse(found)
    assert found.format == "csr"
    assert found.toarray().tolist() == ENCODED


@pytest.mark.parametrize(
    "table",
    [{"id": [1, 2, 3, 4], "review": TEXTS}, [{"review": text, "id": 1} for text in TEXTS], pd.DataFrame({"review": TEXTS}),
     pl.DataFrame({"review": TEXTS}), pa.table({"review": TEXTS})],
    ids=lambda rows: type(rows).__name__,
)  # fmt: skip
def test_a_named_column_is_read_from_any_table(table):
    assert TextDomain(DOMAIN.vocabulary, column="review").encode(table).toarray().tolist() == ENCODED
    with pytest.raises(DataError, match="Name the column"):
        DOMAIN.encode(table)
    with pytest.raises(DataError, match="'text' is missing"):
        TextDomain(DOMAIN.vocabulary, column="text").encode(table)


def test_whatever_is_not_a_string_is_the_empty_text():
    odd = [None, float("nan"), 10, b"good", ["good"], {"good": 1}, object(), np.str_("good"), pd.NaT]
    assert DOMAIN.encode(odd).toarray()[:, 0].tolist() == [0, 0, 0, 0, 0, 0, 0, 1, 0]
    assert DOMAIN.encode([]).shape == (0, 5)
    assert DOMAIN.encode(np.array([1.5, 2.5])).nnz == 0


@pytest.mark.parametrize("rows", ["one text", b"bytes", 3, None, np.array([["a", "b"]])])
def test_what_is_no_list_of_texts_is_refused_by_its_type(rows):
    with pytest.raises(DataError, match="list"):
        DOMAIN.encode(rows)


def test_queries_are_strict():
    assert DOMAIN.encode_query("a GOOD one").tolist() == [1, 0, 0, 0, 0]
    assert DOMAIN.encode_query("none of them known").tolist() == [0, 0, 0, 0, 0]
    named = TextDomain(DOMAIN.vocabulary, column="review")
    assert named.encode_query({"review": "bad"}).tolist() == [0, 1, 0, 0, 0]
    assert named.encode_query("bad").tolist() == [0, 1, 0, 0, 0]
    for record, message in [
        ("", "no words"),
        (" ... ", "no words"),
        (3, "Pass a string"),
        (None, "Pass a string"),
        (b"bad", "string"),
    ]:
        with pytest.raises(QueryError, match=message):
            DOMAIN.encode_query(record)
    for record in ({}, {"text": "bad"}, {"review": "bad", "id": 1}):
        with pytest.raises(QueryError, match="one field 'review'"):
            named.encode_query(record)
    with pytest.raises(QueryError, match="got dict"):
        DOMAIN.encode_query({"review": "bad"})


@pytest.mark.parametrize("batch", [TEXTS[:3], np.array(TEXTS[:3]), pd.Series(TEXTS[:3])], ids=lambda rows: type(rows).__name__)
def test_batches_of_queries(batch):
    assert DOMAIN.encode_queries(batch).tolist() == ENCODED[:3]
    assert DOMAIN.separate(batch) == TEXTS[:3]


def test_a_bad_query_in_a_batch_is_named():
    with pytest.raises(QueryError, match="row 1: the text has no words"):
        DOMAIN.encode_queries(["good", ""])
    with pytest.raises(QueryError, match=r"row 0: .* got float"):
        DOMAIN.encode_queries(pd.Series([np.nan, "good"]))
    with pytest.raises(QueryError, match="not a batch"):
        DOMAIN.encode_queries("good")
    with pytest.raises(QueryError, match="Name the column"):
        DOMAIN.encode_queries(pd.DataFrame({"review": ["good"]}))
    assert TextDomain(["good"], column="review").encode_queries(pd.DataFrame({"review": ["good"]})).tolist() == [[1.0]]
    assert DOMAIN.encode_queries([]).shape == (0, 5)


@pytest.mark.parametrize(
    ("vocabulary", "message"),
    [
        ([], "at least one word"),
        ("good", "Pass a list"),
        ({"good"}, "fixed order"),
        (None, "Pass a list"),
        (["good", "bad", "good"], "repeats 'good'"),
        (["good", 3], "must be a string"),
        (["Good"], "reads as 'good'"),
        (["don’t"], 'reads as "don\'t"'),
        (["very good"], "has 2 words"),
        (["!"], "no word at all"),
        (["<br>"], "no word at all"),
    ],
)
def test_a_vocabulary_is_a_list_of_words_that_can_occur(vocabulary, message):
    with pytest.raises(DomainError, match=message):
        TextDomain(vocabulary)


def test_what_every_domain_offers():
    assert DOMAIN.width == 5
    assert DOMAIN.names == ("good", "bad", "don't", "10", "été")
    assert [(block.start, block.stop, block.kind) for block in DOMAIN.blocks] == [(i, i + 1, "binary") for i in range(5)]
    assert DOMAIN.columns == ()
    assert TextDomain(["a"], column="t").columns == ("t",)
    assert DOMAIN == TextDomain(DOMAIN.vocabulary) != TextDomain(DOMAIN.vocabulary, column="t")
    assert hash(DOMAIN) == hash(TextDomain(list(DOMAIN.vocabulary)))
    assert "5 words" in repr(DOMAIN)
    with pytest.raises(DomainError, match="column must name"):
        TextDomain(["a"], column=3)


@pytest.mark.parametrize("domain", [DOMAIN, TextDomain(["good", "été"], column='review "x"')], ids=["plain", "column"])
def test_descriptions_are_read_back_exactly(domain, tmp_path):
    assert dpx.Domain.from_dict(json.loads(json.dumps(domain.to_dict()))) == domain
    assert dpx.Domain.from_json(domain.to_json()) == dpx.Domain.from_toml(domain.to_toml()) == domain
    for name in ("domain.json", "domain.toml"):
        domain.save(tmp_path / name)
        assert dpx.Domain.load(tmp_path / name) == domain
    assert dpx.Domain.from_dict(domain.to_dict()).fingerprint == domain.fingerprint
    assert len({domain.fingerprint, TextDomain(["good"]).fingerprint, TextDomain(["good"], column="t").fingerprint}) == 3


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"kind": "text"}, "at least one word"),
        ({"kind": "text", "vocabulary": "good"}, "Pass a list"),
        ({"kind": "text", "vocabulary": ["good"], "words": []}, "unknown key 'words'"),
        ({"kind": "text", "vocabulary": ["good"], "tokeniser": "words-2"}, "a different rule from 'words-1'"),
    ],
)
def test_descriptions_that_mean_something_else_are_refused(data, message):
    with pytest.raises(DomainError, match=message):
        dpx.Domain.from_dict(data)
    with pytest.raises(DomainError, match="does not describe a text domain"):
        TextDomain.from_dict({"kind": "tabular", "features": []})


def test_a_vocabulary_from_public_text_holds_the_words_of_most_texts():
    public = ["the good the bad", "The good film", None, "the the the end", "a film"]
    found = TextDomain.from_public_text(public, size=3)
    assert found.vocabulary == ("the", "film", "good")  # in 3, 2 and 2 texts
    assert TextDomain.from_public_text(iter(public), size=2, stop_words=["The"], column="t") == TextDomain(["film", "good"], "t")
    with pytest.raises(DomainError, match="only 6 different words, and size=500"):
        TextDomain.from_public_text(public)
    with pytest.raises(DomainError, match="several texts"):
        TextDomain.from_public_text("one text")


def test_the_declared_column_decides_how_a_list_of_texts_is_shown_to_a_model():
    """No row decides it: records and plain texts are shown alike, made-up ones and registered ones."""

    def answer(rows):
        shown.append({type(row) for row in rows})
        return np.array([1.0 if "good" in str(row) else -1.0 for row in rows])

    texts = ["good film", "bad film"] * 20
    for domain, kind in ((TextDomain(["good", "bad"]), str), (TextDomain(["good", "bad"], column="review"), dict)):
        for rows in (texts, [{"review": text} for text in texts], [*texts[1:], {"review": "good film"}]):
            if domain.column is None and not isinstance(rows[-1], str):
                continue  # records need a column
            shown = []
            data = dpx.PrivateData(rows, domain, model=answer)
            data.labeller({"text": np.array(["good", "bad"], dtype=object)})
            assert set.union(*shown) == {kind}
            assert shown[-1] == {kind}
