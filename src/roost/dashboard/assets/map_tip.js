// @ts-check
// What is said of the host or group under the pointer: its place at once, its name and facts when the pointer rests.

const REST = 120; // milliseconds of rest after which the pointer's host is asked for

export class MapTip {
  /**
   * @param {HTMLElement} frame
   * @param {import("./map_view.js").MapView} view
   * @param {import("./map_data.js").MapData} data
   */
  constructor(frame, view, data) {
    this.frame = frame;
    this.view = view;
    this.data = data;
    this.tip = document.createElement("div");
    this.tip.className = "map-tip";
    this.tip.hidden = true;
    this.hinted = document.createElement("p");
    this.hinted.className = "map-hint";
    this.hinted.hidden = true;
    frame.append(this.tip, this.hinted);
    this.rest = 0;
    this.hinting = 0;
  }

  /**
   * Say something at the lower edge for a moment.
   * @param {string} text
   */
  hint(text) {
    this.hinted.textContent = text;
    this.hinted.hidden = false;
    clearTimeout(this.hinting);
    this.hinting = setTimeout(() => (this.hinted.hidden = true), 1_500);
  }

  /**
   * @param {number} host
   * @param {number} group
   * @param {{x: number, y: number}} [at]
   */
  hover(host, group, at) {
    const { view, tip } = this;
    const changed = host !== view.hovered || group !== view.hoveredGroup;
    if (changed) {
      view.hovered = host;
      view.hoveredGroup = group;
      view.ask();
      clearTimeout(this.rest);
      tip.hidden = group < 0;
      if (group >= 0) {
        const { name, zone, rack, cell, count: hosts, first } = view.groups[group];
        const place = [zone, rack || name, cell].filter(Boolean).join(" / ");
        const known = host < 0 ? undefined : this.data.hosts.get(host);
        tip.replaceChildren(...(known ? lines(known) : [strong(place), host < 0 ? `${hosts.toLocaleString("en")} hosts` : `host ${host - first + 1} of ${hosts}`]));
        if (host >= 0 && !known) this.rest = setTimeout(() => void this.askHost(host), REST);
      }
    }
    if (at && !tip.hidden) {
      const right = at.x > this.frame.clientWidth - tip.offsetWidth - 24;
      const low = at.y > this.frame.clientHeight - tip.offsetHeight - 24;
      const x = Math.max(4, right ? at.x - tip.offsetWidth - 14 : at.x + 14);
      const y = Math.max(4, low ? at.y - tip.offsetHeight - 14 : at.y + 14);
      tip.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
    }
  }

  /** @param {number} host */
  async askHost(host) {
    try {
      const found = await this.data.readHost(host, "tip");
      if (found && this.view.hovered === host) this.tip.replaceChildren(...lines(found));
    } catch (error) {
      if (this.view.hovered === host) this.tip.append(`: ${error instanceof Error ? error.message : error}`);
    }
  }
}

/** @param {string} text */
function strong(text) {
  const made = document.createElement("strong");
  made.textContent = text;
  return made;
}

/** @param {import("./map_data.js").Host} host */
function lines(host) {
  return [strong(host.name), facts(host)];
}

/** @param {import("./map_data.js").Host} host */
export function facts(host) {
  const list = document.createElement("dl");
  list.className = "facts";
  for (const [label, value] of host.facts) {
    const [term, fact] = [document.createElement("dt"), document.createElement("dd")];
    term.textContent = label;
    fact.textContent = value;
    list.append(term, fact);
  }
  return list;
}
