// @ts-check
// The picture of the map on a canvas.
//
// A texture has one pixel a host. A frame is one scaled copy of its visible part, the lines between squares, and the names
// and marks that have room, so that it costs the same with 1,000 hosts and with 100,000. Squares are whole pixels of the
// screen at each scale, or they would be of different sizes.

import { STATES } from "./map_colours.js";

/** @typedef {import("./map_layout.js").Layout} Layout */
/** @typedef {import("./map_layout.js").Group} Group */

const SCALES = [2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64];
const PAD = 10; // CSS pixels around the map
const LINES_FROM = 4; // CSS pixels of a square from which lines are drawn between squares
const MARKS_FROM = 8; // CSS pixels of a square from which states have marks
const LABEL_HEIGHT = 12; // CSS pixels between boxes from which the names of groups have room
const [, DOWN, DISABLED] = STATES.map(({ value }) => value);

export class MapView {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {import("./map_colours.js").Colours} colours
   */
  constructor(canvas, colours) {
    this.canvas = canvas;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));
    this.colours = colours;
    this.texture = document.createElement("canvas");
    this.ratio = 1;
    /** Pixels of the screen: of a square, and of the left upper corner of the canvas in the map. */
    this.pitch = 2;
    this.x = 0;
    this.y = 0;
    /** @type {Layout | null} */
    this.layout = null;
    /** @type {Group[]} */
    this.groups = [];
    /** @type {Uint8Array} */
    this.levels = new Uint8Array(0);
    this.index = null;
    this.selected = -1;
    this.hovered = -1;
    this.hoveredGroup = -1;
    this.asked = 0;
    /** @type {Map<string, string>} */
    this.cut = new Map();
  }

  /**
   * @param {Layout} layout
   * @param {Group[]} groups
   */
  show(layout, groups) {
    this.layout = layout;
    this.groups = groups;
    this.texture.width = layout.columns;
    this.texture.height = layout.rows;
    const flatbush = /** @type {any} */ (globalThis).Flatbush;
    this.index = groups.length ? new flatbush(groups.length) : null;
    for (let each = 0; each < groups.length; each++) {
      const [x, y, w, h] = layout.boxes.subarray(4 * each, 4 * each + 4);
      this.index.add(x, y - layout.strip, x + w, y + h);
    }
    this.index?.finish(); // flatbush wants at least one box
    this.fit();
  }

  /** @param {Uint8Array} levels a byte a host */
  fill(levels) {
    this.levels = levels;
    const layout = this.layout;
    if (!layout) return;
    const image = new ImageData(layout.columns, layout.rows);
    const pixels = new Uint32Array(image.data.buffer);
    this.groups.forEach((group, number) => {
      const [x, y, w, h] = layout.boxes.subarray(4 * number, 4 * number + 4);
      const rest = w * h - group.count; // the last row may not be full
      if (rest) pixels.fill(this.colours.boxPixel, (y + h - 1) * layout.columns + x + w - rest, (y + h - 1) * layout.columns + x + w);
    });
    const { places } = layout;
    const colour = this.colours.levels;
    for (let host = 0; host < levels.length; host++) pixels[places[host]] = colour[levels[host]];
    /** @type {CanvasRenderingContext2D} */ (this.texture.getContext("2d")).putImageData(image, 0, 0);
    this.ask();
  }

  /** @param {[number, number][]} changes hosts and their bytes */
  change(changes) {
    const layout = this.layout;
    if (!layout) return;
    for (const [host, level] of changes) this.levels[host] = level;
    if (changes.length > 400) return this.fill(this.levels);
    const context = /** @type {CanvasRenderingContext2D} */ (this.texture.getContext("2d"));
    const image = new ImageData(1, 1);
    const pixel = new Uint32Array(image.data.buffer);
    for (const [host, level] of changes) {
      pixel[0] = this.colours.levels[level];
      context.putImageData(image, layout.places[host] % layout.columns, Math.floor(layout.places[host] / layout.columns));
    }
    this.ask();
  }

  /** The smallest scale, at which the layout was made. */
  get smallest() {
    return this.layout ? Math.round(this.layout.pitch * this.ratio) : 2;
  }

  /** Whether the map is larger than the canvas, so that it can be dragged. */
  get larger() {
    const { layout, pitch, canvas } = this;
    const pad = 2 * PAD * this.ratio;
    return !!layout && (layout.columns * pitch + pad > canvas.width || layout.rows * pitch + pad > canvas.height);
  }

  fit() {
    this.pitch = this.smallest;
    this.move(0, 0);
  }

  /**
   * Show one scale more or less, with a point of the canvas where it is.
   * @param {number} steps
   * @param {number} [atX] CSS pixels
   * @param {number} [atY]
   */
  zoom(steps, atX = this.canvas.clientWidth / 2, atY = this.canvas.clientHeight / 2) {
    const scales = this.scales();
    const now = scales.findIndex((each) => each >= this.pitch);
    const next = scales[Math.min(scales.length - 1, Math.max(0, now + steps))];
    const [px, py] = [atX * this.ratio, atY * this.ratio];
    const factor = next / this.pitch;
    const pad = PAD * this.ratio;
    this.pitch = next;
    this.move((this.x + px - pad) * factor - px + pad, (this.y + py - pad) * factor - py + pad);
  }

  scales() {
    const least = this.smallest;
    return [least, ...SCALES.map((each) => Math.round(each * this.ratio)).filter((each) => each > least)];
  }

  /**
   * Show a group as large as it has room.
   * @param {number} number
   */
  zoomTo(number) {
    const layout = this.layout;
    if (!layout) return;
    const [x, y, w, h] = layout.boxes.subarray(4 * number, 4 * number + 4);
    const room = (/** @type {number} */ each) =>
      (w + 2) * each <= this.canvas.width && (h + layout.strip + 2) * each <= this.canvas.height;
    this.pitch = this.scales().filter(room).pop() ?? this.smallest;
    this.move(
      (x + w / 2) * this.pitch - this.canvas.width / 2 + PAD * this.ratio,
      (y + h / 2) * this.pitch - this.canvas.height / 2 + PAD * this.ratio,
    );
  }

  /**
   * Set the corner, as far as there is something to see.
   * @param {number} x pixels of the screen
   * @param {number} y
   */
  move(x, y) {
    const layout = this.layout;
    if (!layout) return;
    const pad = 2 * PAD * this.ratio;
    this.x = Math.round(Math.max(0, Math.min(x, layout.columns * this.pitch + pad - this.canvas.width)));
    this.y = Math.round(Math.max(0, Math.min(y, layout.rows * this.pitch + pad - this.canvas.height)));
    this.ask();
  }

  /**
   * Move so that a host is seen.
   * @param {number} host
   */
  reveal(host) {
    const { x, y } = this.corner(host);
    const margin = 2 * this.pitch;
    const within = (/** @type {number} */ at, /** @type {number} */ from, /** @type {number} */ size) =>
      at - margin < from ? at - margin : at + this.pitch + margin > from + size ? at + this.pitch + margin - size : from;
    this.move(within(x, this.x, this.canvas.width), within(y, this.y, this.canvas.height));
  }

  /**
   * The left upper corner of a host in pixels of the screen, from the corner of the map with its margin.
   * @param {number} host
   */
  corner(host) {
    const { columns, places } = /** @type {Layout} */ (this.layout);
    const pad = PAD * this.ratio;
    return { x: (places[host] % columns) * this.pitch + pad, y: Math.floor(places[host] / columns) * this.pitch + pad };
  }

  /**
   * What is at a point of the canvas (CSS pixels): a host, else a group (above its box is its name), else -1.
   * @param {number} atX
   * @param {number} atY
   */
  find(atX, atY) {
    const layout = this.layout;
    if (!layout || !this.index) return { host: -1, group: -1 };
    const x = (atX * this.ratio + this.x - PAD * this.ratio) / this.pitch;
    const y = (atY * this.ratio + this.y - PAD * this.ratio) / this.pitch;
    const inside = x >= 0 && y >= 0 && x < layout.columns && y < layout.rows;
    const host = inside ? layout.slots[Math.floor(y) * layout.columns + Math.floor(x)] : -1;
    if (host >= 0) return { host, group: layout.groupOf[host] };
    const group = this.index.search(x, y, x, y)[0] ?? -1;
    return { host: -1, group };
  }

  /** Paint before the next frame. */
  ask() {
    if (!this.asked) this.asked = requestAnimationFrame(() => this.paint());
  }

  paint() {
    this.asked = 0;
    const { canvas, context, layout, pitch, ratio, colours } = this;
    context.fillStyle = colours.ground;
    context.fillRect(0, 0, canvas.width, canvas.height);
    if (!layout) return;
    const left = PAD * ratio - this.x;
    const top = PAD * ratio - this.y;
    const fromX = Math.max(0, Math.floor(-left / pitch));
    const fromY = Math.max(0, Math.floor(-top / pitch));
    const toX = Math.min(layout.columns, Math.ceil((canvas.width - left) / pitch));
    const toY = Math.min(layout.rows, Math.ceil((canvas.height - top) / pitch));
    if (toX <= fromX || toY <= fromY) return;
    context.imageSmoothingEnabled = false;
    context.drawImage(this.texture, fromX, fromY, toX - fromX, toY - fromY,
      left + fromX * pitch, top + fromY * pitch, (toX - fromX) * pitch, (toY - fromY) * pitch);
    const gap = pitch >= LINES_FROM * ratio ? Math.max(1, Math.round((pitch >= 16 * ratio ? 2 : 1) * ratio)) : 0;
    if (gap) {
      const [x, y] = [left + fromX * pitch, top + fromY * pitch];
      const [width, height] = [(toX - fromX) * pitch, (toY - fromY) * pitch];
      for (let each = 1; each <= toX - fromX; each++) context.fillRect(x + each * pitch - gap, y, gap, height);
      for (let each = 1; each <= toY - fromY; each++) context.fillRect(x, y + each * pitch - gap, width, gap);
    }
    if (pitch >= MARKS_FROM * ratio) this.paintMarks(left, top, fromX, fromY, toX, toY, gap);
    this.paintNames(left, top, this.index?.search(fromX, fromY, toX, toY) ?? []);
    if (this.hoveredGroup >= 0 && this.hovered < 0) this.paintGroup(left, top);
    if (this.hovered >= 0) this.paintRing(this.hovered, gap, 1);
    if (this.selected >= 0) this.paintRing(this.selected, gap, 2);
  }

  /**
   * A cross on each host that is down, a stroke on each that is disabled.
   * @param {number} left @param {number} top @param {number} fromX @param {number} fromY @param {number} toX
   * @param {number} toY @param {number} gap
   */
  paintMarks(left, top, fromX, fromY, toX, toY, gap) {
    const { columns, slots } = /** @type {Layout} */ (this.layout);
    const { context, levels, pitch } = this;
    const inset = Math.round(pitch * 0.22);
    const size = pitch - gap - 2 * inset;
    context.beginPath();
    for (let y = fromY; y < toY; y++) {
      for (let x = fromX; x < toX; x++) {
        const host = slots[y * columns + x];
        const level = host < 0 ? 0 : levels[host];
        if (level !== DOWN && level !== DISABLED) continue;
        const [atX, atY] = [left + x * pitch + inset, top + y * pitch + inset];
        context.moveTo(atX, atY + size);
        context.lineTo(atX + size, atY);
        if (level !== DOWN) continue;
        context.moveTo(atX, atY);
        context.lineTo(atX + size, atY + size);
      }
    }
    context.strokeStyle = this.colours.ground;
    context.lineWidth = Math.max(1.5 * this.ratio, pitch / 9);
    context.stroke();
  }

  /**
   * Names of zones, and of the groups whose box has room for one. The zone at the upper edge keeps its name there.
   * @param {number} left @param {number} top @param {number[]} visible
   */
  paintNames(left, top, visible) {
    const { boxes, zones, strip, heading } = /** @type {Layout} */ (this.layout);
    const { context, pitch, ratio, canvas, colours } = this;
    context.textBaseline = "alphabetic";
    context.fillStyle = colours.label;
    const room = strip * pitch;
    if (room >= LABEL_HEIGHT * ratio) {
      context.font = `500 ${Math.round(10.5 * ratio)}px ${colours.font}`;
      for (const each of visible) {
        const width = boxes[4 * each + 2] * pitch;
        if (width < 26 * ratio) continue;
        const text = this.shorten(this.groups[each].name, width);
        context.fillText(text, left + boxes[4 * each] * pitch, top + boxes[4 * each + 1] * pitch - 4 * ratio);
      }
    }
    if (!heading) return;
    for (const zone of zones) {
      const natural = top + zone.top * pitch;
      const end = top + zone.bottom * pitch;
      if (end < 0 || natural > canvas.height) continue;
      const pinned = natural < 0;
      const y = pinned ? 0 : natural;
      const [name, hosts] = [zone.name || "no zone", zone.count.toLocaleString("en")];
      const x = Math.max(left, PAD * ratio);
      context.font = `600 ${Math.round(12 * ratio)}px ${colours.font}`;
      const width = context.measureText(name).width + 7 * ratio;
      if (pinned) {
        context.fillStyle = colours.ground;
        context.fillRect(0, 0, x + width + 60 * ratio, 22 * ratio);
      }
      context.fillStyle = colours.label;
      context.fillText(name, x, y + 15 * ratio);
      context.font = `400 ${Math.round(11 * ratio)}px ${colours.font}`;
      context.fillText(hosts, x + width, y + 15 * ratio);
    }
  }

  /**
   * A text that is not wider than some pixels, kept for the next frame.
   * @param {string} text
   * @param {number} width
   */
  shorten(text, width) {
    const key = `${width} ${text}`;
    let short = this.cut.get(key);
    if (short !== undefined) return short;
    short = text;
    for (let length = text.length; length > 1 && this.context.measureText(short).width > width; ) short = `${text.slice(0, --length)}…`;
    if (this.cut.size > 20_000) this.cut.clear();
    this.cut.set(key, short);
    return short;
  }

  /**
   * @param {number} left
   * @param {number} top
   */
  paintGroup(left, top) {
    const { boxes } = /** @type {Layout} */ (this.layout);
    const [x, y, w, h] = boxes.subarray(4 * this.hoveredGroup, 4 * this.hoveredGroup + 4);
    this.context.strokeStyle = this.colours.label;
    this.context.lineWidth = this.ratio;
    this.context.strokeRect(left + x * this.pitch - 1.5, top + y * this.pitch - 1.5, w * this.pitch + 2, h * this.pitch + 2);
  }

  /**
   * A ring around a host, as thick as it needs to be seen on small squares.
   * @param {number} host @param {number} gap @param {number} weight
   */
  paintRing(host, gap, weight) {
    const { context, pitch, ratio, colours } = this;
    const corner = this.corner(host);
    const line = weight * ratio;
    const size = Math.max(pitch - gap, 6 * ratio);
    const x = corner.x - this.x + (pitch - gap - size) / 2;
    const y = corner.y - this.y + (pitch - gap - size) / 2;
    context.lineWidth = line * 2;
    context.strokeStyle = colours.ground;
    context.strokeRect(x - 2 * line, y - 2 * line, size + 4 * line, size + 4 * line);
    context.lineWidth = line;
    context.strokeStyle = colours.select;
    context.strokeRect(x - line, y - line, size + 2 * line, size + 2 * line);
  }
}
