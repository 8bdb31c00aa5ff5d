// The service's page: asks the service what the published page computes by itself, and shows what it cost.
import { createAnswer } from "./answer.js";
import { changesOf, rankedChanges } from "./changes.js";
import { element, setText } from "./dom.js";
import { decode, featuresOf } from "./domain.js";
import { buildForm, startingRecord } from "./form.js";
import { offerTable, offerThemes, partsOf } from "./frame.js";
import { createGauge, short } from "./gauge.js";
import { scaleOf } from "./scale.js";
import { offerTargets, quoted, servedTargets } from "./targets.js";

const KEY_NAME = "dpexplain-key"; // for this tab only, gone when it is closed
const SHOWN = 50;
const at = (id) => document.getElementById(id);

class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || "The service did not answer.");
    this.status = status;
    this.kind = String(problem.type ?? "").split(":").pop();
  }
}

/** One call to the service this page came from. */
async function call(path, key, body) {
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  const options = body === undefined ? { headers } : { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let response;
  try {
    response = await fetch(path, { ...options, credentials: "omit", redirect: "error" });
  } catch {
    throw new Refused(0, { title: "The service cannot be reached. Is it running?" });
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(response.status, answer);
  return answer;
}

async function open(key) {
  const card = await call("v1/domain", key);
  at("door").hidden = true;
  at("service").hidden = false;
  at("leave").hidden = !key;
  showCard(card);
  start(card, key);
}

function showCard({ about, names, domain, name }) {
  const source = about.source === "release" ? "a private release, paid once" : `private rows, ε = ${short(about.epsilon)} at most for each answer`;
  const facts = [
    ["Model", name],
    ["Answers from", source],
    ["Private records", about.rows.toLocaleString("en")],
    ["Features", `${domain.features?.length ?? names.length} (${names.length} columns)`],
  ];
  at("facts").replaceChildren(...facts.flatMap(([term, text]) => [element("dt", {}, term), element("dd", {}, text)]));
}

function start(card, key) {
  const features = featuresOf(card.domain, card.names);
  const scale = scaleOf(card.scale);
  const shown = createAnswer(at, { names: card.names, features, outcome: card.outcome, scale });
  const gauge = createGauge(at("gauge"));
  const targets = servedTargets(card.targets);
  let chosen = targets[0];
  let record = null;
  let question = null; // one id for one record: asking again for the same is free
  let gone = false; // whether the budget is exhausted

  const allow = () => (at("ask").disabled = record === null || gone);
  const changed = (next) => {
    record = next;
    allow();
    const stale = question !== null && JSON.stringify([next, chosen.target]) !== question.text;
    for (const part of document.querySelectorAll(".answer")) part.classList.toggle("stale", stale);
  };
  const showAnswer = (answer) => {
    at("answers").hidden = false;
    for (const part of document.querySelectorAll(".answer")) part.classList.remove("stale");
    shown.update({ ...answer, contributions: answer.contributions ?? null }, question.record);
    setText(at("cost"), answer.cost.epsilon === 0 ? "This answer was free." : `This answer cost ε = ${short(answer.cost.epsilon)}. ${answer.cost.statement}`);
  };
  let asked = 0;
  const refresh = async () => {
    const turn = ++asked; // the answer to an earlier question is dropped once a later one was asked
    const standing = await call("v1/guarantee", key);
    const archive = card.role === "owner" ? await pastAnswers(key, standing.answers ?? 0) : null;
    if (turn !== asked) return;
    gauge.update({ spent: standing.spent.epsilon, remaining: standing.remaining?.epsilon ?? null, budget: standing.budget?.epsilon ?? null, answers: standing.answers, curve: standing.curve });
    setText(at("promise"), standing.promise);
    setText(at("statement"), standing.spent.statement);
    if (archive !== null) showArchive(card, features, archive);
    gone = standing.exhausted;
    at("gone").hidden = !gone;
    allow();
  };
  const ask = async () => {
    if (record === null) return;
    const text = JSON.stringify([record, chosen.target]);
    if (question?.text !== text) question = { text, record, id: `page-${crypto.randomUUID?.() ?? Array.from(crypto.getRandomValues(new Uint32Array(4))).join("-")}` };
    at("ask").disabled = true;
    at("answer").setAttribute("aria-busy", "true");
    try {
      const named = features[0].kind === "text" ? record[0] : Object.fromEntries(features.map((feature, i) => [feature.name, record[i]]));
      showAnswer(await call("v1/explain", key, { record: named, request_id: question.id, ...(chosen.target === null ? {} : { target: chosen.target }) }));
      tell("");
      await refresh();
    } catch (error) {
      tell(error.kind === "budget-exhausted" ? `The budget is spent: ${error.message}` : error.message);
      if (error.status === 401) leave();
    } finally {
      at("answer").setAttribute("aria-busy", "false");
      allow();
    }
  };

  at("question").addEventListener("submit", (event) => {
    event.preventDefault();
    ask();
  });
  buildForm(at("fields"), features, changed).set(startingRecord(features));
  const name = () => shown.setOutcome(chosen.isOutcome ? quoted(chosen.name) : card.outcome);
  offerTargets(at("target-line"), at("target"), targets.map((one) => one.name), (position) => {
    chosen = targets[position];
    name();
    changed(record);
    if (question !== null) ask(); // it is free: only releases have several targets
  });
  name();
  refresh().catch((error) => tell(error.message));
}

/** The last answers, oldest first; only owners get them from the service. */
async function pastAnswers(key, total) {
  return (await call(`v1/history?limit=${SHOWN}&after=${Math.max(total - SHOWN, 0)}`, key)).answers;
}

function showArchive(card, features, answers) {
  const rows = answers.reverse().map(({ position, request_id: id, answer }) =>
    element("tr", { title: id }, element("th", { scope: "row" }, position), element("td", { class: "asked" }, askedAbout(features, answer) ?? id), element("td", {}, inShort(card, features, answer))));
  at("archive").hidden = false;
  at("archive-rows").replaceChildren(...rows);
  setText(at("archive-count"), rows.length === 0 ? "Nothing was answered yet." : `The last ${rows.length} of ${answers[0].position} answers.`);
}

/** The record of a past question in words; null for what was no question about a record. */
function askedAbout(features, { point }) {
  if (!point) return null;
  const record = decode(features, Float64Array.from(point));
  return features[0].kind === "text" ? record[0] : partsOf(features, record).map(({ name, note }) => `${name} ${note}`).join(", ");
}

/** A past answer in a few words. */
function inShort(card, features, answer) {
  if (!answer.values) return "a release";
  const scale = scaleOf(card.scale);
  const changes = changesOf(features, decode(features, Float64Array.from(answer.point)));
  const strongest = rankedChanges(changes, answer.values, answer.error, scale).slice(0, 3);
  const about = typeof answer.intercept === "number" ? `about ${scale.format(scale.answer(answer.intercept))}; strongest changes: ` : "";
  return about + strongest.map(({ name, note, value }) => `${name} ${note} ${scale.difference(value)}`).join(", ");
}

function tell(text) {
  setText(at("problem"), text);
  at("problem").hidden = text === "";
}

function leave() {
  sessionStorage.removeItem(KEY_NAME);
  location.reload();
}

function knock(event) {
  event.preventDefault();
  const key = at("key").value.trim();
  open(key).then(() => sessionStorage.setItem(KEY_NAME, key)).catch((error) => {
    setText(at("door-problem"), error.status === 401 ? "This key is not known here." : error.message);
    at("door-problem").hidden = false;
    at("key").focus();
  });
}

offerThemes(at("theme"));
offerTable(at("show-steps"), at("steps-table"));
offerTable(at("show-table"), at("table"));
at("leave").addEventListener("click", leave);
at("door-form").addEventListener("submit", knock);
const settings = JSON.parse(at("data").textContent);
const storedKey = sessionStorage.getItem(KEY_NAME);
if (settings.open) open("").catch((error) => tell(error.message));
else if (storedKey) open(storedKey).catch(leave);
else at("door").hidden = false;
