// Which class, or which of several models, is explained: the choices of a page, and the control to choose with.
import { element } from "./dom.js";

const FIRST = "the first model";

/** The name of a class as an outcome. */
export const quoted = (name) => `“${name}”`;

/** The numbers of one choice: `first`, with the entries that differ in place of its own. */
export function mergeTarget(first, changed) {
  const isGroup = (value) => value !== null && typeof value === "object" && !Array.isArray(value) && !ArrayBuffer.isView(value);
  const merged = Object.entries(changed).map(([key, value]) => [key, isGroup(value) && isGroup(first[key]) ? { ...first[key], ...value } : value]);
  return { ...first, ...Object.fromEntries(merged) };
}

/** [{name, outcome, release, surrogate}], at least one. Classes are outcomes themselves; models are explained beside the first one. */
export function choicesOf({ release, surrogate, outcome, targets }) {
  const own = { name: FIRST, outcome, release, surrogate };
  const others = (targets?.choices ?? []).map((one) => ({ name: one.name, outcome: targets.kind === "class" ? quoted(one.name) : outcome, release: mergeTarget(release, one.release), surrogate: one.surrogate }));
  return targets?.kind === "class" ? others : [own, ...others];
}

/** Fills the chooser and shows it where there is something to choose; `chosen(position)` is called at every choice. */
export function offerTargets(line, select, names, chosen) {
  select.replaceChildren(...names.map((name, i) => element("option", { value: i }, name)));
  select.addEventListener("change", () => chosen(select.selectedIndex));
  line.hidden = names.length < 2;
}

/** What a service lets one choose: [{name, target}], the release's own answer first where others are other models. */
export function servedTargets(targets) {
  const named = (targets?.names ?? []).map((name) => ({ name, target: name, isOutcome: targets.kind === "class" }));
  return targets?.kind === "class" ? named : [{ name: FIRST, target: null, isOutcome: false }, ...named];
}
