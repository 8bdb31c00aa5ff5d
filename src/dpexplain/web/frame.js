// Controls that every page with an explanation has: theme, number of bars, table of numbers, the record's own values.
import { element, setText } from "./dom.js";
import { inWords, present, titleOf } from "./domain.js";

/** The name and the record's own value of each part that contributions speak of: a feature, or a word of a text. */
export function partsOf(features, record) {
  return features.flatMap((feature, i) => {
    if (feature.kind !== "text") return [{ name: titleOf(feature), note: inWords(feature, record[i]) }];
    return present(feature, record[i]).map((there, j) => ({ name: feature.vocabulary[j], note: there ? "in the text" : "not in the text" }));
  });
}

/** Choices for how many bars to show. */
export function fillCounts(select, total) {
  const choices = [5, 8, 12, 20].filter((choice) => choice < total);
  select.append(...choices.map((choice) => element("option", { value: choice }, `${choice} strongest`)));
  select.append(element("option", { value: "all" }, `all ${total}`));
  select.value = String(choices.includes(8) ? 8 : "all");
}

/** A button that switches between light and dark. The system's setting applies until it is used. */
export function offerThemes(button) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const current = () => document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light");
  const refresh = () => {
    const next = current() === "dark" ? "light" : "dark";
    button.setAttribute("aria-label", `Switch to ${next} colours`);
    button.dataset.now = current();
  };
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = current() === "dark" ? "light" : "dark";
    refresh();
  });
  system.addEventListener("change", refresh);
  refresh();
}

/** A button that shows the table, which is otherwise visible to screen readers only. */
export function offerTable(button, root) {
  button.addEventListener("click", () => {
    const shown = root.classList.toggle("visually-hidden");
    button.setAttribute("aria-expanded", String(!shown));
    root.tabIndex = shown ? -1 : 0; // it may scroll, so the keyboard must reach it
    setText(button, shown ? "Show the numbers" : "Hide the numbers");
  });
}
