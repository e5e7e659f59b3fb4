// @ts-check
// The legend of the map: how many hosts have each level, as bars in the colours of the map, and how many each state.

import { LEVELS, STATES } from "./map_colours.js";

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 30;

/**
 * @typedef {{title: string, ends: string[], none?: string}} Scale
 *   title: "VCPU used"; ends: words below the bars, from the lowest level to the highest; none: of hosts without such a thing
 */

/** @param {Uint8Array} levels */
export function count(levels) {
  const counts = new Uint32Array(256);
  for (const level of levels) counts[level]++;
  return counts;
}

/**
 * @param {HTMLElement} parent
 * @param {Uint32Array} counts
 * @param {Scale} scale
 */
export function showLegend(parent, counts, scale) {
  const levels = [...counts.subarray(0, LEVELS)];
  const shown = levels.reduce((sum, each) => sum + each, 0);
  const most = Math.max(1, ...levels);
  const histogram = element("svg", {
    class: "map-histogram",
    viewBox: `0 0 ${LEVELS} ${HEIGHT}`,
    preserveAspectRatio: "none",
    role: "img",
    "aria-label": `${scale.title} of ${number(shown)} hosts from ${scale.ends[0]} to ${scale.ends[scale.ends.length - 1]}: ${quarters(levels)}`,
  });
  levels.forEach((each, level) => {
    const height = each ? Math.max(1.5, (HEIGHT * each) / most) : 0.5;
    histogram.append(element("rect", { class: `ramp-${level}`, x: level, y: HEIGHT - height, width: 0.88, height }));
  });
  const ends = document.createElement("div");
  ends.className = "map-ends";
  ends.append(...scale.ends.map((each) => text("span", each)));
  const title = text("p", `${scale.title}, ${number(shown)} hosts`);
  const list = document.createElement("ul");
  list.className = "legend";
  for (const { value, name, label } of STATES) {
    if (!counts[value]) continue;
    const swatch = element("svg", { class: `swatch ${name}`, viewBox: "0 0 12 12", "aria-hidden": "true" });
    swatch.append(element("rect", { class: name, width: 12, height: 12 }));
    if (name === "map-down") swatch.append(element("path", { class: "swatch-mark", d: "M3 3l6 6M9 3l-6 6" }));
    if (name === "map-disabled") swatch.append(element("path", { class: "swatch-mark", d: "M3 9l6-6" }));
    const item = document.createElement("li");
    item.append(swatch, `${value === LEVELS ? (scale.none ?? label) : label} `, text("span", number(counts[value])));
    list.append(item);
  }
  parent.replaceChildren(title, histogram, ends, list);
}

/**
 * The hosts of each quarter of the levels, in words.
 * @param {number[]} levels
 */
function quarters(levels) {
  const size = LEVELS / 4;
  return [0, 1, 2, 3]
    .map((each) => number(levels.slice(each * size, (each + 1) * size).reduce((sum, more) => sum + more, 0)))
    .join(", ") + " by quarter";
}

/** @param {number} value */
function number(value) {
  return value.toLocaleString("en");
}

/**
 * @param {string} name
 * @param {string} content
 */
function text(name, content) {
  const made = document.createElement(name);
  made.textContent = content;
  return made;
}

/**
 * @param {string} name
 * @param {Record<string, string | number>} attributes
 */
function element(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}
