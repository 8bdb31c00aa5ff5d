// The budget: what is spent, and the curve over the answers, as one SVG with an equivalent text.
import { element, setText, svgElement } from "./dom.js";

const WIDTH = 320;
const HEIGHT = 84;

/** `update({spent, remaining, budget, answers, curve})`: ε so far, left, and in all (or null), answers so far, [[answers, ε], …]. */
export function createGauge(root) {
  const bar = element("div", { class: "gauge", role: "meter", "aria-label": "Privacy budget spent", "aria-valuemin": 0 });
  const filled = element("div", { class: "gauge-filled" });
  bar.append(filled);
  const words = element("p", { class: "gauge-words" });
  const area = svgElement("path", { class: "spent-area" });
  const line = svgElement("path", { class: "spent-line" });
  const limit = svgElement("line", { class: "spent-limit", x1: 0, x2: WIDTH, y1: 4, y2: 4 });
  const curve = svgElement("svg", { class: "spent", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", preserveAspectRatio: "none" }, area, line, limit);
  const caption = element("p", { class: "small" });
  const left = element("p", { class: "small" });
  root.append(bar, words, left, curve, caption);
  return {
    update(state) {
      const endless = state.budget === null;
      bar.hidden = endless;
      const share = endless ? 0 : Math.min(state.spent / state.budget, 1);
      filled.style.setProperty("width", `${(100 * share).toFixed(2)}%`);
      bar.classList.toggle("low", share > 0.9);
      bar.setAttribute("aria-valuemax", endless ? 0 : state.budget);
      bar.setAttribute("aria-valuenow", state.spent.toPrecision(4));
      setText(words, endless ? `Paid once: ε = ${short(state.spent)}. Answers are free and unlimited.` : `ε = ${short(state.spent)} of ${short(state.budget)} spent on ${state.answers} ${state.answers === 1 ? "answer" : "answers"}`);
      left.hidden = endless;
      setText(left, endless ? "" : `ε = ${short(state.remaining, Math.floor)} remains for further answers. It is not the difference of the two, because costs add as squares.`);
      const drawn = !endless && state.curve.length > 0;
      curve.toggleAttribute("hidden", !drawn);
      caption.hidden = !drawn;
      if (drawn) draw(area, line, curve, caption, state);
    },
  };
}

function draw(area, line, curve, caption, { budget, curve: points }) {
  const last = points[points.length - 1][0];
  const x = (answers) => (WIDTH * answers) / last;
  const y = (epsilon) => HEIGHT - ((HEIGHT - 4) * epsilon) / budget;
  const steps = [[0, 0], ...points].map(([answers, epsilon], i) => `${i ? "L" : "M"}${x(answers).toFixed(1)},${y(epsilon).toFixed(1)}`).join("");
  line.setAttribute("d", steps);
  area.setAttribute("d", `${steps}L${WIDTH},${HEIGHT}L0,${HEIGHT}Z`);
  const text = `Spent over ${last} ${last === 1 ? "answer" : "answers"}; the dashed line is the whole budget.`;
  curve.setAttribute("aria-label", text);
  setText(caption, text);
}

/** A number with three digits, rounded up, or down with Math.floor. */
export function short(epsilon, round = Math.ceil) {
  if (!(epsilon > 0)) return "0";
  const unit = 10 ** (Math.floor(Math.log10(epsilon)) - 2);
  return String(Number((round(epsilon / unit + (round === Math.ceil ? -1e-9 : 1e-9)) * unit).toPrecision(3)));
}
