// Inputs from a domain: one labelled control per feature, and a search field where there are many.
import { element, identity, setText } from "./dom.js";
import { inWords, isDate, mayBeMissing, middle, readable, refusal, rounded, stepOf, titleOf, valuesOf } from "./domain.js";

const MANY = 14;

/** Builds the form in `root`. `changed(record)` gets one value per feature, or null while one of them cannot be asked about. */
export function buildForm(root, features, changed) {
  const fields = features.map((feature) => buildField(feature, () => report()));
  const report = () => {
    const accepted = fields.map((field) => field.accepted()).every(Boolean);
    changed(accepted ? fields.map((field) => field.value()) : null);
  };
  const list = element("div", { class: features.length > MANY ? "fields many" : "fields" }, ...fields.map((field) => field.root));
  if (features.length > MANY) root.append(searchFor(features, fields));
  root.append(list);
  return {
    record: () => fields.map((field) => field.value()),
    set(record) {
      fields.forEach((field, i) => field.show(record[i]));
      report();
    },
  };
}

function buildField(feature, changed) {
  if (feature.kind === "numeric") return numberField(feature, changed);
  if (feature.kind === "binary" && !mayBeMissing(feature)) return switchField(feature, changed);
  if (feature.kind === "text") return textField(feature, changed);
  if (isDate(feature)) return dateField(feature, changed);
  return choiceField(feature, changed);
}

/** The label of a control, with a sentence of help where the domain has one. */
function labelOf(feature, id) {
  return element("label", { for: id, title: feature.help ?? null }, titleOf(feature));
}

function numberField(feature, changed) {
  const id = identity("field");
  const bounds = { min: feature.low, max: feature.high };
  const number = element("input", { type: "number", id, ...bounds, step: "any", inputmode: "decimal", autocomplete: "off", placeholder: mayBeMissing(feature) ? "not known" : null, "aria-describedby": `${id}-problem` });
  const size = stepOf(feature);
  const slider = element("input", { type: "range", ...bounds, step: size === 1 ? 1 : "any", "aria-label": `${titleOf(feature)}, slider` });
  const fill = () => slider.style.setProperty("--filled", `${(100 * (Number(slider.value) - feature.low)) / (feature.high - feature.low)}%`);
  const value = () => (number.value.trim() === "" ? NaN : Number(number.value));
  const { problem, judge } = judged(feature, number, value);
  slider.addEventListener("input", () => {
    number.value = String(rounded(feature, Number(slider.value)));
    fill();
    judge();
    changed();
  });
  number.addEventListener("input", () => {
    if (judge() && number.value.trim() !== "") {
      slider.value = number.value;
      fill();
    }
    changed();
  });
  const ends = element("div", { class: "ends", "aria-hidden": "true" }, element("span", {}, readable(feature.low)), element("span", {}, readable(feature.high)));
  return {
    root: element("div", { class: "field number" }, labelOf(feature, id), number, slider, ends, problem),
    accepted: judge,
    value,
    show(wanted) {
      number.value = String(wanted);
      slider.value = String(wanted);
      fill();
      judge();
    },
  };
}

function textField(feature, changed) {
  return typedField(feature, changed, "text", "textarea", { rows: 8, autocomplete: "off" }, (text) => text);
}

function dateField(feature, changed) {
  const type = feature.kind === "date" ? "date" : "datetime-local";
  return typedField(feature, changed, "number", "input", { type, min: feature.low, max: feature.high, step: 1 }, (text) => text || null);
}

/** One control that is typed into; `valueOf` turns its text into a value of the record. */
function typedField(feature, changed, style, tag, attributes, valueOf) {
  const id = identity("field");
  const control = element(tag, { ...attributes, id, "aria-describedby": `${id}-problem` });
  const { problem, judge } = judged(feature, control, () => control.value);
  control.addEventListener("input", () => {
    judge();
    changed();
  });
  return {
    root: element("div", { class: `field ${style}` }, labelOf(feature, id), control, problem),
    accepted: judge,
    value: () => valueOf(control.value),
    show(wanted) {
      control.value = wanted ?? "";
      judge();
    },
  };
}

/** A line for what is wrong with a control's value, and a function that fills it and returns whether nothing is. */
function judged(feature, control, value) {
  const problem = element("p", { class: "problem", id: `${control.id}-problem`, hidden: true });
  const judge = () => {
    const why = refusal(feature, value());
    problem.hidden = why === null;
    setText(problem, why ?? "");
    control.setAttribute("aria-invalid", String(why !== null));
    return why === null;
  };
  return { problem, judge };
}

function choiceField(feature, changed) {
  const id = identity("field");
  const values = mayBeMissing(feature) ? [...valuesOf(feature), null] : valuesOf(feature);
  const options = values.map((value, i) => element("option", { value: i }, inWords(feature, value)));
  const select = element("select", { id }, ...options);
  select.addEventListener("change", changed);
  select.addEventListener("input", changed);
  return {
    root: element("div", { class: "field choice" }, labelOf(feature, id), select),
    accepted: () => true,
    value: () => values[select.selectedIndex],
    show(wanted) {
      select.selectedIndex = values.indexOf(wanted);
    },
  };
}

function switchField(feature, changed) {
  const id = identity("field");
  const values = valuesOf(feature);
  const box = element("input", { type: "checkbox", role: "switch", id });
  const shown = element("span", { class: "state", "aria-hidden": "true" });
  const refresh = () => setText(shown, inWords(feature, values[Number(box.checked)]));
  box.addEventListener("change", () => {
    refresh();
    changed();
  });
  const words = feature.values ? `${titleOf(feature)} is ${feature.values[1]}` : titleOf(feature);
  return {
    root: element("div", { class: "field switch" }, element("label", { for: id }, words), shown, box),
    accepted: () => true,
    value: () => values[Number(box.checked)],
    show(wanted) {
      box.checked = values.indexOf(wanted) === 1;
      refresh();
    },
  };
}

/** A field that leaves only the features whose name or value contains what is typed. */
function searchFor(features, fields) {
  const id = identity("search");
  const box = element("input", { type: "search", id, placeholder: `Find among ${features.length} features`, autocomplete: "off" });
  const found = element("p", { class: "visually-hidden", role: "status" });
  const texts = features.map((feature) => [feature.name, titleOf(feature), ...(feature.kind === "numeric" || isDate(feature) ? [] : valuesOf(feature))].join(" ").toLowerCase());
  box.addEventListener("input", () => {
    const wanted = box.value.trim().toLowerCase();
    texts.forEach((text, i) => (fields[i].root.hidden = !text.includes(wanted)));
    setText(found, `${texts.filter((text) => text.includes(wanted)).length} of ${texts.length} features shown`);
  });
  return element("div", { class: "search" }, element("label", { for: id, class: "visually-hidden" }, "Find a feature"), box, found);
}

/** The record a form starts from. */
export function startingRecord(features) {
  return features.map(middle);
}
