// @ts-check
// The pointer, the wheel and the keys on the map.

import { neighbour } from "./map_layout.js";

const DRAG = 4; // CSS pixels that make a click a drag
const WHEEL = 60; // pixels of a wheel that make a step of the scale
const SPREAD = 1.25; // of two fingers that make a step of the scale

export class MapInput {
  /** @param {import("./fleet_map.js").FleetMap} map */
  constructor(map) {
    this.map = map;
    /** @type {Map<number, {x: number, y: number}>} */
    this.pointers = new Map();
    /** @type {{x: number, y: number, viewX: number, viewY: number, dragged: boolean} | null} */
    this.from = null;
    this.spread = 0;
    this.wheel = 0;
    const { canvas, frame, tip, view } = map;
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.point(event));
    for (const kind of /** @type {const} */ (["pointerup", "pointercancel"])) canvas.addEventListener(kind, (event) => this.release(event));
    canvas.addEventListener("pointerleave", () => tip.hover(-1, -1));
    canvas.addEventListener("dblclick", () => void map.open());
    canvas.addEventListener("wheel", (event) => this.turn(event), { passive: false });
    frame.addEventListener("keydown", (event) => this.pressKey(event));
    frame.addEventListener("focus", () => void (view.selected < 0 && !this.pointers.size && map.select(0)));
  }

  /** @param {PointerEvent} event */
  press(event) {
    if (event.button) return;
    this.map.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    const { x, y } = this.map.view;
    if (this.pointers.size === 1) this.from = { x: event.offsetX, y: event.offsetY, viewX: x, viewY: y, dragged: false };
    else if (this.from) this.from.dragged = true;
    this.spread = this.distance();
    this.map.frame.focus({ preventScroll: true });
  }

  /** @param {PointerEvent} event */
  point(event) {
    const at = { x: event.offsetX, y: event.offsetY };
    const { view, tip, frame } = this.map;
    const from = this.from;
    if (!this.pointers.has(event.pointerId) || !from) return this.pointAt(at);
    this.pointers.set(event.pointerId, at);
    if (this.pointers.size === 2) return this.pinch();
    if (!from.dragged && Math.hypot(at.x - from.x, at.y - from.y) < DRAG) return;
    from.dragged = true;
    frame.classList.add("dragging");
    tip.hover(-1, -1);
    view.move(from.viewX - (at.x - from.x) * view.ratio, from.viewY - (at.y - from.y) * view.ratio);
  }

  /** @param {{x: number, y: number}} at */
  pointAt(at) {
    const { host, group } = this.map.view.find(at.x, at.y);
    this.map.tip.hover(host, group, at);
  }

  pinch() {
    const spread = this.distance();
    if (!this.spread || (spread < SPREAD * this.spread && spread * SPREAD > this.spread)) return;
    const [one, other] = [...this.pointers.values()];
    this.map.view.zoom(spread > this.spread ? 1 : -1, (one.x + other.x) / 2, (one.y + other.y) / 2);
    this.spread = spread;
    this.map.moved();
  }

  /** @param {PointerEvent} event */
  release(event) {
    const { from } = this;
    this.pointers.delete(event.pointerId);
    if (this.pointers.size) return;
    this.map.frame.classList.remove("dragging");
    this.from = null;
    if (!from || from.dragged || event.type === "pointercancel") return;
    const { host, group } = this.map.view.find(event.offsetX, event.offsetY);
    if (host >= 0) void this.map.select(host);
    else if (group >= 0) {
      this.map.view.zoomTo(group);
      this.map.moved();
    }
  }

  distance() {
    const [one, other] = [...this.pointers.values()];
    return other ? Math.hypot(one.x - other.x, one.y - other.y) : 0;
  }

  /** The wheel scrolls the page until the map has the focus, or Ctrl is held. @param {WheelEvent} event */
  turn(event) {
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== this.map.frame) {
      this.map.tip.hint("Click the map, or hold Ctrl, to zoom with the wheel");
      return;
    }
    event.preventDefault();
    // Lines are of 20 pixels; a pinch on a touchpad comes as small turns with Ctrl.
    this.wheel += event.deltaY * (event.deltaMode ? 20 : 1) * (event.ctrlKey && Math.abs(event.deltaY) < 20 ? 4 : 1);
    if (Math.abs(this.wheel) < WHEEL) return;
    this.map.view.zoom(this.wheel < 0 ? 1 : -1, event.offsetX, event.offsetY);
    this.wheel = 0;
    this.map.moved();
    this.pointAt({ x: event.offsetX, y: event.offsetY });
  }

  /** @param {KeyboardEvent} event */
  pressKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { map } = this;
    const { layout, groups, levels, selected } = map.view;
    if (!layout || !levels.length) return;
    const at = Math.max(0, selected);
    const group = layout.groupOf[at];
    const go = (/** @type {number} */ host) => () => void map.select(host);
    const step = (/** @type {number} */ dx, /** @type {number} */ dy) => () => void map.select(selected < 0 ? 0 : neighbour(layout, at, dx, dy));
    const zoom = (/** @type {number} */ steps) => () => this.zoomAtSelected(steps);
    /** @type {HTMLElement | null} */
    const search = map.root.querySelector("[data-map-search] input");
    /** @type {Record<string, () => void>} */
    const actions = {
      ArrowLeft: step(-1, 0),
      ArrowRight: step(1, 0),
      ArrowUp: step(0, -1),
      ArrowDown: step(0, 1),
      Home: go(0),
      End: go(levels.length - 1),
      PageUp: go(groups[Math.max(0, group - 1)].first),
      PageDown: go(groups[Math.min(groups.length - 1, group + 1)].first),
      "+": zoom(1),
      "=": zoom(1),
      "-": zoom(-1),
      0: () => map.view.fit(),
      Enter: () => void map.open(),
      Escape: go(-1),
      "/": () => search?.focus(),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
    map.moved();
  }

  /** @param {number} steps */
  zoomAtSelected(steps) {
    const { view } = this.map;
    if (view.selected < 0) return view.zoom(steps);
    const { x, y } = view.corner(view.selected);
    view.zoom(steps, (x - view.x) / view.ratio, (y - view.y) / view.ratio);
    view.reveal(view.selected);
  }
}
