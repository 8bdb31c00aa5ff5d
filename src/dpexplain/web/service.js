// The service's page: asks the service what the published page computes by itself, and shows what it cost.
import { createChart } from "./chart.js";
import { element, setText } from "./dom.js";
import { featuresOf } from "./domain.js";
import { rank, summary } from "./effects.js";
import { buildForm, startingRecord } from "./form.js";
import { fillCounts, notesOf, offerTable, offerThemes } from "./frame.js";
import { createGauge, short } from "./gauge.js";
import { createTable } from "./table.js";

const KEPT = "dpexplain-key"; // for this tab only, gone when it is closed
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
    ["Records behind it", about.rows.toLocaleString("en")],
    ["Features", `${domain.features?.length ?? names.length} (${names.length} columns)`],
  ];
  at("facts").replaceChildren(...facts.flatMap(([term, text]) => [element("dt", {}, term), element("dd", {}, text)]));
}

function start(card, key) {
  const features = featuresOf(card.domain, card.names);
  const chart = createChart(at("chart"));
  const table = createTable(at("table"), `Effects on ${card.outcome} for the record that was asked about, strongest first`);
  const gauge = createGauge(at("gauge"));
  const count = at("count");
  let record = null;
  let ranked = [];
  let question = null; // one id for one record: asking again for the same is free

  const show = () => {
    const limit = count.value === "all" ? ranked.length : Number(count.value);
    chart.update(ranked.slice(0, limit), { away: "away", towards: "towards", label: `Bar chart. ${summary(ranked, card.outcome)} All values are in the table that follows.` });
  };
  const changed = (next) => {
    record = next;
    at("ask").disabled = next === null;
    const stale = ranked.length > 0 && JSON.stringify(next) !== question?.text;
    at("answer").classList.toggle("stale", stale);
  };
  const showAnswer = (answer) => {
    const notes = notesOf(features, question.record);
    ranked = rank(answer.names, answer.values, answer.error).map((effect) => ({ ...effect, note: notes[effect.index] }));
    at("answer").hidden = false;
    at("answer").classList.remove("stale");
    at("answer").classList.toggle("unknown", answer.error === null);
    show();
    table.update(ranked);
    setText(at("summary"), summary(ranked, card.outcome));
    setText(at("cost"), answer.cost.epsilon === 0 ? "This answer was free." : `This answer cost ε = ${short(answer.cost.epsilon)}. ${answer.cost.statement}`);
  };
  let asked = 0;
  const refresh = async () => {
    const turn = ++asked; // an answer that was overtaken by a later question is old news
    const standing = await call("v1/guarantee", key);
    const archive = card.role === "owner" ? await pastAnswers(key, standing.answers ?? 0) : null;
    if (turn !== asked) return;
    gauge.update({ spent: standing.spent.epsilon, budget: standing.budget?.epsilon ?? null, answers: standing.answers, curve: standing.curve });
    setText(at("promise"), standing.promise);
    setText(at("statement"), standing.spent.statement);
    if (archive !== null) showArchive(card, archive);
  };
  const ask = async () => {
    if (record === null) return;
    const text = JSON.stringify(record);
    if (question?.text !== text) question = { text, record, id: `page-${crypto.randomUUID?.() ?? Array.from(crypto.getRandomValues(new Uint32Array(4))).join("-")}` };
    busy(true);
    try {
      const named = features[0].kind === "text" ? record[0] : Object.fromEntries(features.map((feature, i) => [feature.name, record[i]]));
      showAnswer(await call("v1/explain", key, { record: named, request_id: question.id }));
      tell("");
      await refresh();
    } catch (error) {
      tell(error.kind === "budget-exhausted" ? `The budget is spent: ${error.message}` : error.message);
      if (error.status === 401) leave();
    } finally {
      busy(false);
    }
  };

  fillCounts(count, card.names.length);
  count.addEventListener("change", show);
  at("question").addEventListener("submit", (event) => {
    event.preventDefault();
    ask();
  });
  buildForm(at("fields"), features, changed).set(startingRecord(features));
  refresh().catch((error) => tell(error.message));
}

/** The last answers, oldest first; only owners get them from the service. */
async function pastAnswers(key, total) {
  return (await call(`v1/history?limit=${SHOWN}&after=${Math.max(total - SHOWN, 0)}`, key)).answers;
}

function showArchive(card, answers) {
  const rows = answers.reverse().map(({ position, request_id: id, answer }) => {
    const strongest = answer.values ? rank(card.names, answer.values, answer.error).slice(0, 3).map(({ name, value }) => `${name} ${value >= 0 ? "+" : "−"}${Math.abs(value).toFixed(2)}`).join(", ") : "a release";
    return element("tr", {}, element("th", { scope: "row" }, position), element("td", { class: "request" }, id), element("td", {}, strongest));
  });
  at("archive").hidden = false;
  at("archive-rows").replaceChildren(...rows);
  setText(at("archive-count"), rows.length === 0 ? "Nothing was answered yet." : `The last ${rows.length} of ${answers[0].position} answers.`);
}

function busy(now) {
  at("ask").disabled = now;
  at("answer").setAttribute("aria-busy", String(now));
}

function tell(text) {
  setText(at("problem"), text);
  at("problem").hidden = text === "";
}

function leave() {
  sessionStorage.removeItem(KEPT);
  location.reload();
}

function knock(event) {
  event.preventDefault();
  const key = at("key").value.trim();
  open(key).then(() => sessionStorage.setItem(KEPT, key)).catch((error) => {
    setText(at("door-problem"), error.status === 401 ? "This key is not known here." : error.message);
    at("door-problem").hidden = false;
    at("key").focus();
  });
}

offerThemes(at("theme"));
offerTable(at("show-table"), at("table"));
at("leave").addEventListener("click", leave);
at("door-form").addEventListener("submit", knock);
const settings = JSON.parse(at("data").textContent);
const kept = sessionStorage.getItem(KEPT);
if (settings.open) open("").catch((error) => tell(error.message));
else if (kept) open(kept).catch(leave);
else at("door").hidden = false;
