"""Private rows in CSV and Arrow files: types follow from the domain, entry by entry, and odd lines move nobody else."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from typer.testing import CliRunner

import dpexplain as dpx
from dpexplain.cli import app
from dpexplain.errors import DataError
from dpexplain.registration.declared_tables import declared_files, read_declared

DOMAIN = dpx.Domain(
    [
        dpx.Numeric("age", 0, 100, integer=True),
        dpx.Numeric("share", 0, 1),
        dpx.Categorical("work", ["private", "public"]),
        dpx.Categorical("code", [1, 2]),
        dpx.Binary("married"),
        dpx.Date("opened", "2000-01-01", "2020-01-01"),
    ]
)
HEADER = "age,share,work,code,married,opened,y"
LINES = [
    "30,0.5,private,1,yes,2010-01-01,0.7",
    "40,,public,2,no,,0.2",
    "x,1e-1,circus,7,,2011-05-05,",
    '50,0.25,"pri""v",1.0,true,x,1',
]


def read(path, lines, header=HEADER):
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return read_declared([path], DOMAIN, [*DOMAIN.columns, "y"], ["y"])


def test_entries_become_what_the_domain_declares(tmp_path):
    table = read(tmp_path / "a.csv", LINES)
    types = {field.name: str(field.type) for field in table.schema}
    assert types == {
        "age": "int64", "share": "double", "work": "string", "code": "int64", "married": "string", "opened": "date32[day]", "y": "double",
    }  # fmt: skip
    assert table["age"].to_pylist() == [30, 40, None, 50]
    assert table["share"].to_pylist() == [0.5, None, 0.1, 0.25]
    assert table["work"].to_pylist() == ["private", "public", "circus", 'pri"v']
    assert table["code"].to_pylist() == [1, 2, 7, 1]
    assert table["y"].to_pylist() == [0.7, 0.2, None, 1.0]
    assert table["opened"].null_count == 2


odd = st.lists(st.text(alphabet=st.characters(codec="utf-8", exclude_characters='\n\r"\0'), max_size=8), min_size=1, max_size=9)


@given(odd, st.integers(0, 4))
def test_no_line_decides_how_another_is_read(tmp_path_factory, fields, place):
    path = tmp_path_factory.mktemp("odd") / "a.csv"
    expected = DOMAIN.encode(read(path, LINES)).tolist()
    found = DOMAIN.encode(read(path, [*LINES[:place], ",".join(fields), *LINES[place:]])).tolist()
    if len(found) > len(expected):
        del found[place]
    assert found == expected


@given(st.binary(max_size=12).filter(lambda line: not set(line) & set(b'\n\r"')), st.integers(0, 4))
@example(b"M\xfcller,1", 0)
@example(b"M\xfcller,1", 4)
@example(b"\xc3", 2)
@example(b"\xef\xbb\xbf1,,,,,,", 0)
def test_no_line_of_bytes_stops_reading_or_decides_how_another_is_read(tmp_path_factory, line, place):
    """In another encoding, say, and with another number of fields: Arrow cannot leave such a line out by itself."""
    path = tmp_path_factory.mktemp("odd") / "a.csv"
    expected = DOMAIN.encode(read(path, LINES)).tolist()
    lines = [one.encode() for one in LINES]
    path.write_bytes(b"\n".join([HEADER.encode(), *lines[:place], line, *lines[place:]]) + b"\n")
    found = DOMAIN.encode(read_declared([path], DOMAIN, DOMAIN.columns)).tolist()
    if len(found) > len(expected):
        del found[place]
    assert found == expected


def test_a_record_may_be_long(tmp_path):
    """Arrow reads a file in blocks of a megabyte by default, and refuses one in which a record does not end."""
    path = tmp_path / "a.csv"
    expected = DOMAIN.encode(read(path, LINES)).tolist()
    found = DOMAIN.encode(read(path, [LINES[0], "30,0.5," + "z" * 3_000_000 + ",1,yes,2010-01-01,0.7", *LINES[1:]])).tolist()
    assert [found[0], *found[2:]] == expected


def test_bytes_that_are_no_text_are_read_too(tmp_path):
    (tmp_path / "a.csv").write_bytes(HEADER.encode() + b"\n30,0.5,\xff\xfe,1,yes,2010-01-01,0.7\n")
    table = read_declared([tmp_path / "a.csv"], DOMAIN, DOMAIN.columns)
    assert table.num_rows == 1


def test_arrow_files_bring_their_types(tmp_path):
    table = pa.table(
        {
            "age": [1, 2],
            "share": [0.1, 0.2],
            "work": ["private", None],
            "code": [1, 2],
            "married": [True, False],
            "opened": ["2001-01-01"] * 2,
        }
    )
    for name, make in (("a.arrow", pa.ipc.new_file), ("b.feather", pa.ipc.new_file), ("c.ipc", pa.ipc.new_stream)):
        with pa.OSFile(str(tmp_path / name), "wb") as sink, make(sink, table.schema) as writer:
            writer.write_table(table)
        assert read_declared([tmp_path / name], DOMAIN, DOMAIN.columns).equals(table)


def test_files_are_found_by_name_and_pattern(tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("x\n")
    assert [path.name for path in declared_files(f"{tmp_path}/*.csv")] == ["a.csv", "b.csv"]
    assert declared_files("rows.parquet") is None
    for where in ("no.csv", f"{tmp_path}/z*.csv"):
        with pytest.raises(DataError, match="there is no file"):
            declared_files(where)
    with pytest.raises(DataError, match=r"has no column 'agee' \(did you mean 'age'"):
        read_declared([tmp_path / "a.csv"], dpx.Domain([dpx.Numeric("agee", 0, 1)]), ["agee"]) if read(
            tmp_path / "a.csv", LINES
        ) else None


def release(tmp_path, *more):
    DOMAIN.save(tmp_path / "domain.toml") if not (tmp_path / "domain.toml").exists() else None
    start = ["release", str(tmp_path / "a.csv"), "--domain", str(tmp_path / "domain.toml"), "--epsilon", "1", "--delta", "1e-4"]
    return CliRunner().invoke(app, [*start, "--label", "y", "-o", str(tmp_path / "a.dpx"), "--force", *more])


@pytest.mark.parametrize(("mark", "called"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")])
def test_columns_that_are_separated_otherwise_are_refused_with_the_remedy(tmp_path, mark, called):
    with pytest.raises(DataError, match=f"a.csv separates its columns by {called}. Write it with commas"):
        read(tmp_path / "a.csv", [line.replace(",", mark) for line in LINES], HEADER.replace(",", mark))


@pytest.mark.slow
def test_the_command_releases_from_csv(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{rng.integers(0, 100)},{rng.random():.3f},private,1,yes,2010-01-01,{rng.random():.3f}" for _ in range(300)]
    read(tmp_path / "a.csv", lines)
    done = release(tmp_path, "--answer", "probability")
    assert done.exit_code == 0, done.output
    untyped = release(tmp_path)
    assert untyped.exit_code == 2
    assert "of a CSV file has no type" in untyped.output
    assert release(tmp_path, "--answer", "probability", "--stream").exit_code == 2


@pytest.mark.parametrize("entries", [[1, 1, None], [1, 2, 3], [None, None, None]])
def test_a_type_that_arrow_cannot_select_rows_of_is_refused_whatever_it_holds(entries):
    coded = pc.run_end_encode(pa.array(entries, pa.int64()))
    table = pa.table({"age": pa.array([20.0, 30.0, 40.0]), "code": coded})
    domain = dpx.Domain([dpx.Numeric("age", 0, 100)])
    with pytest.raises(DataError, match="plain type"):
        dpx.PrivateData(table, domain, labels=[1, -1, 1])
