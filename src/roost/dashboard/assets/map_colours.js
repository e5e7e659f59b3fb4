// @ts-check
// The colours of the map, read from the style of the page, which has others by day and by night.

export const LEVELS = 32;
export const STATES = [
  { value: 32, name: "map-none", label: "not there" },
  { value: 33, name: "map-down", label: "down" },
  { value: 34, name: "map-disabled", label: "disabled" },
  { value: 35, name: "map-filtered", label: "filtered out" },
];

const NAMES = ["map-ground", "map-box", "map-label", "map-select"];

/** @typedef {{ground: string, box: string, label: string, select: string, levels: Uint32Array, boxPixel: number, font: string}} Colours */

/**
 * @param {HTMLElement} parent an element in whose style the custom properties are
 * @returns {Colours} levels: a pixel for each byte, as ImageData has it on machines of this byte order
 */
export function readColours(parent) {
  const probe = document.createElement("div");
  probe.hidden = true;
  const wanted = [...Array(LEVELS).keys()].map((level) => `ramp-${level}`).concat(STATES.map(({ name }) => name), NAMES);
  for (const name of wanted) {
    const each = document.createElement("i");
    each.style.color = `var(--${name})`;
    probe.append(each);
  }
  parent.append(probe);
  const found = [...probe.children].map((each) => getComputedStyle(each).color);
  const font = getComputedStyle(parent).fontFamily;
  probe.remove();

  const canvas = document.createElement("canvas");
  canvas.width = found.length;
  canvas.height = 1;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { willReadFrequently: true }));
  found.forEach((colour, x) => {
    context.fillStyle = colour;
    context.fillRect(x, 0, 1, 1);
  });
  const pixels = new Uint32Array(context.getImageData(0, 0, found.length, 1).data.buffer);
  const levels = new Uint32Array(256).fill(pixels[LEVELS]);
  levels.set(pixels.subarray(0, LEVELS + STATES.length));
  const rest = LEVELS + STATES.length;
  const [ground, box, label, select] = found.slice(rest);
  return { ground, box, label, select, levels, boxPixel: pixels[rest + 1], font };
}
