// @ts-check
// The map of the fleet: what the pointer, the keys, the form and the stream of events do to it.
//
//   <div class="map" data-map data-layout-url data-levels-url data-host-url data-find-url data-scale='{"title", "ends"}'>
//     <div class="map-bar">
//       <form class="filter-form" data-map-form> fields of the levels: a change shows others, and changes the address </form>
//       <form class="filter-form" data-map-search><input type="search" …></form>
//       <div class="map-zoom"><button type="button" data-map-action="in|out|fit" aria-label="…">…</div>
//     </div>
//     <div class="map-frame" tabindex="0" role="application" aria-label="…"></div>
//     <div class="map-foot"><div class="map-legend"></div><div class="map-card card" role="status"></div></div>
//   </div>
//
// data-selected: the index of a host that is selected at first. Keys: arrows, Home, End, PageUp, PageDown (groups), +, -, 0,
// Enter opens the host, Escape, / goes to the search. The contract with the server is in map_data.js.

import { readColours } from "./map_colours.js";
import { MapData, OldLayout } from "./map_data.js";
import { MapInput } from "./map_input.js";
import { arrange } from "./map_layout.js";
import { count, showLegend } from "./map_legend.js";
import { MapTip, facts } from "./map_tip.js";
import { MapView } from "./map_view.js";

const TRIES = 5; // readings of a layout that is no longer the newest when its levels are asked for
const SLACK = 24; // CSS pixels of the frame around a map that does not fill it

export class FleetMap {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.data = new MapData(root.dataset);
    this.frame = /** @type {HTMLElement} */ (root.querySelector(".map-frame"));
    this.legend = /** @type {HTMLElement | null} */ (root.querySelector(".map-legend"));
    this.card = /** @type {HTMLElement | null} */ (root.querySelector(".map-card"));
    this.form = /** @type {HTMLFormElement | null} */ (root.querySelector("[data-map-form]"));
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("aria-hidden", "true");
    this.frame.replaceChildren(this.canvas);
    this.view = new MapView(this.canvas, readColours(this.frame));
    this.tip = new MapTip(this.frame, this.view, this.data);
    /** @type {import("./map_legend.js").Scale} */
    this.scale = JSON.parse(root.dataset.scale ?? '{"title": "Level", "ends": ["low", "high"]}');
    /** @type {Uint32Array} */
    this.counts = new Uint32Array(256);
    /** @type {import("./map_layout.js").Group[]} */
    this.groups = [];
    this.hosts = 0;
    this.commit = -1;
    this.topic = "";
    /** @type {{layout: string, commit: number, changes: [number, number][]}[] | null} changes that came before their levels */
    this.early = [];
    /** @type {Promise<void> | null} */
    this.reading = null;
    this.old = true;
    this.legendAsked = 0;
    this.width = 0;
  }

  async start() {
    this.listen();
    this.emptyCard();
    await this.readAll();
    const selected = Number(this.root.dataset.selected ?? -1);
    if (selected >= 0 && selected < this.view.levels.length) this.select(selected);
  }

  /** Read the layout and the levels of it: once at a time, and again if it was asked for meanwhile. */
  async readAll() {
    this.old = true;
    this.reading ??= this.readWhileOld().finally(() => (this.reading = null));
    await this.reading;
  }

  async readWhileOld() {
    for (let tries = 0; this.old && tries < TRIES; tries++) {
      this.old = false;
      await this.attempt(async () => {
        const { groups, count: hosts } = await this.data.readLayout();
        Object.assign(this, { groups, hosts });
        this.place();
        await this.readLevels();
      });
    }
  }

  async readLevels() {
    this.early ??= [];
    const asked = this.fields();
    const found = await this.data.readLevels(asked);
    if (String(asked) !== String(this.fields())) return; // the form has changed since
    this.commit = found.commit;
    if (found.scale) this.scale = found.scale;
    this.topic = found.topic;
    this.root.dataset.liveWant = found.topic ? `${found.topic} layout` : "layout";
    this.view.fill(found.levels);
    this.counts = count(found.levels);
    this.showLegend();
    const early = this.early;
    this.early = null;
    for (const each of early) this.change(each);
    this.root.dataset.ready = String(found.commit);
  }

  /**
   * Do what may be refused: a layout that is old is read again, all else is said.
   * @param {() => Promise<void>} action
   */
  async attempt(action) {
    try {
      await action();
      this.say("");
    } catch (error) {
      this.early = null;
      if (error instanceof OldLayout) {
        this.old = true;
        return this.reading ? undefined : this.readAll();
      }
      this.say(`The map cannot be read (${error instanceof Error ? error.message : error}).`);
    }
  }

  /** Give the hosts their places in the width of the frame. */
  place() {
    const { frame, view } = this;
    frame.style.height = "";
    const [width, height] = [frame.clientWidth, frame.clientHeight];
    const layout = arrange(this.groups, this.hosts, width - SLACK, height - SLACK);
    const needed = layout.rows * layout.pitch + SLACK;
    if (needed < height) frame.style.height = `${needed}px`;
    this.width = frame.clientWidth;
    this.resize();
    view.show(layout, this.groups);
    if (view.levels.length === this.hosts) view.fill(view.levels);
    if (view.selected >= this.hosts) view.selected = -1;
    this.moved();
  }

  resize() {
    const { canvas, view } = this;
    view.ratio = Math.min(3, globalThis.devicePixelRatio || 1);
    canvas.width = Math.round(this.frame.clientWidth * view.ratio);
    canvas.height = Math.round(this.frame.clientHeight * view.ratio);
  }

  /** @returns {URLSearchParams} */
  fields() {
    return new URLSearchParams(this.form ? /** @type {any} */ (new FormData(this.form)) : "");
  }

  listen() {
    const { frame, root } = this;
    new MapInput(this);
    root.addEventListener("click", (event) => {
      const button = /** @type {HTMLElement | null} */ (event.target instanceof Element ? event.target.closest("[data-map-action]") : null);
      const action = button?.dataset.mapAction;
      if (action === "in") this.view.zoom(1);
      if (action === "out") this.view.zoom(-1);
      if (action === "fit") this.view.fit();
      this.moved();
    });
    this.shown = this.chosen();
    this.form?.addEventListener("change", () => this.changeForm());
    this.form?.addEventListener("submit", (event) => {
      event.preventDefault();
      this.changeForm();
    });
    root.querySelector("[data-map-search]")?.addEventListener("submit", (event) => this.search(event));
    new ResizeObserver(() => {
      if (this.width && Math.abs(frame.clientWidth - this.width) > 1) this.place();
    }).observe(frame);
    for (const media of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) matchMedia(media).addEventListener("change", () => this.recolour());
    document.addEventListener("roost:theme", () => this.recolour());
    document.addEventListener("roost:live", (event) => this.hear(/** @type {CustomEvent} */ (event).detail));
    document.addEventListener("roost:live-state", (event) => {
      if (/** @type {CustomEvent} */ (event).detail === "live" && this.topic) void this.attempt(() => this.readLevels());
    });
  }

  recolour() {
    this.view.colours = readColours(this.frame);
    this.view.fill(this.view.levels);
  }

  /** @param {{topic: string, data: string}} event */
  hear({ topic, data }) {
    if (topic === "layout" && data !== this.data.layout) void this.readAll();
    if (topic !== this.topic || !topic) return;
    const message = JSON.parse(data);
    if (message.layout !== this.data.layout) void this.readAll();
    else if (this.early) this.early.push(message);
    else this.change(message);
  }

  /** @param {{layout: string, commit: number, changes: [number, number][]}} message */
  change({ layout, commit, changes }) {
    if (layout !== this.data.layout || commit <= this.commit) return;
    this.commit = commit;
    const known = changes.filter(([host]) => host < this.view.levels.length);
    for (const [host, level] of known) {
      this.counts[this.view.levels[host]]--;
      this.counts[level]++;
      this.view.levels[host] = level;
      this.data.hosts.delete(host);
    }
    this.view.change(known);
    this.showLegend();
    this.root.dataset.ready = String(commit);
  }

  showLegend() {
    if (!this.legend || this.legendAsked) return;
    this.legendAsked = requestAnimationFrame(() => {
      this.legendAsked = 0;
      if (this.legend) showLegend(this.legend, this.counts, this.scale);
    });
  }

  async changeForm() {
    const address = new URL(location.href);
    for (const name of new Set([...(this.form?.elements ?? [])].map((each) => /** @type {HTMLInputElement} */ (each).name))) {
      if (name) address.searchParams.delete(name);
    }
    for (const [name, value] of this.fields()) if (value) address.searchParams.append(name, value);
    // A colour changes the picture alone; all else the numbers and tables around it as well.
    if (this.chosen() !== this.shown) return location.assign(address);
    history.replaceState(history.state, "", address);
    await this.attempt(() => this.readLevels());
  }

  /** Return the fields of the form without the colour. */
  chosen() {
    const fields = this.fields();
    fields.delete("by");
    return String(fields);
  }

  moved() {
    this.frame.classList.toggle("zoomed", this.view.larger);
    this.tip.hover(-1, -1);
  }

  /**
   * Select a host and show it in the card; -1 none.
   * @param {number} host
   */
  async select(host) {
    const { view, card } = this;
    host = Math.min(host, view.levels.length - 1);
    view.selected = host;
    view.ask();
    if (host < 0) return this.emptyCard();
    view.reveal(host);
    try {
      const found = await this.data.readHost(host, "card");
      if (!found || view.selected !== host || !card) return;
      const link = document.createElement("a");
      link.href = found.href;
      link.className = "name";
      link.textContent = found.name;
      card.replaceChildren(link, facts(found));
    } catch (error) {
      card?.replaceChildren(`This host cannot be read (${error instanceof Error ? error.message : error}).`);
    }
  }

  emptyCard() {
    const words = document.createElement("p");
    words.className = "muted";
    words.textContent = "No host is selected: click one, or use the arrow keys on the map.";
    this.card?.replaceChildren(words);
  }

  /** Open the page of the selected host. */
  async open() {
    if (this.view.selected < 0) return;
    const found = await this.data.readHost(this.view.selected, "card").catch(() => null);
    if (found) location.assign(found.href);
  }

  /** @param {Event} event */
  async search(event) {
    if (!this.root.dataset.findUrl) return; // the form has an address of its own
    event.preventDefault();
    const input = /** @type {HTMLInputElement | null} */ (/** @type {Element} */ (event.currentTarget).querySelector("input"));
    await this.attempt(async () => {
      const { hosts, more } = await this.data.find(input?.value ?? "");
      if (!hosts.length) return this.tip.hint("No host has this in its name");
      if (more) this.tip.hint(`One of ${(hosts.length + more).toLocaleString("en")}: ${hosts[0][1]}`);
      this.frame.focus({ preventScroll: true });
      await this.select(hosts[0][0]);
    });
  }

  /**
   * Say why there is no map, with a button that tries again.
   * @param {string} problem
   */
  say(problem) {
    this.problem?.remove();
    if (!problem) return;
    this.problem = document.createElement("div");
    this.problem.className = "notice state-fails";
    this.problem.setAttribute("role", "alert");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "button small";
    button.textContent = "Try again";
    button.addEventListener("click", () => void this.readAll());
    const words = document.createElement("p");
    words.textContent = problem;
    this.problem.append(words, button);
    this.frame.before(this.problem);
  }
}

for (const root of /** @type {NodeListOf<HTMLElement & {fleetMap?: FleetMap}>} */ (document.querySelectorAll("[data-map]"))) {
  root.fleetMap = new FleetMap(root);
  void root.fleetMap.start();
}
