// @ts-check
// Charts over time, drawn by uPlot. The numbers are in the page a second time, as a table: for readers of the text, for
// copies, and where no script runs.
//
//   <figure class="chart" data-chart='{…}'>   or data-chart-url, an address of the same JSON
//     <figcaption>VCPU <span class="muted">…</span></figcaption>
//     <div class="chart-plot"></div> <div class="chart-readout"></div>
//     <details><summary>As a table</summary>…</details>
//   </figure>
//
//   {"x": [seconds since 1970, …],
//    "series": [{"name": "used", "colour": "used", "values": [1, null, …], "area": true, "dashed": false}, …],
//    "unit": "VCPU", "low": 0, "high": null,      the ends of the axis, by the values where null
//    "href": "/ui?at={x}",                        where a click leads, {x} the time in whole seconds
//    "group": "fleet", "marks": [{"x": 1764, "label": "upgrade"}]}
//
// colour: the name of a custom property without its dashes: used, allocated, reserved, ok, look, fails, accent, cat-1 …
// Charts of a group share the cursor. An htmx swap that keeps the figure keeps the chart; new figures are drawn.

const NUMBER = new Intl.NumberFormat("en", { maximumSignificantDigits: 4, notation: "compact" });
const EXACT = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
const MOMENT = new Intl.DateTimeFormat("en-GB", {
  weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZone: "UTC",
});
const MONTH = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", timeZone: "UTC" });

/**
 * @typedef {{name: string, colour: string, values: (number | null)[], area?: boolean, dashed?: boolean}} Series
 * @typedef {{x: number[], series: Series[], unit?: string, low?: number | null, high?: number | null, href?: string, group?: string,
 *   marks?: {x: number, label: string}[]}} ChartData
 */

/** @type {any} */
const UPlot = /** @type {any} */ (globalThis).uPlot;
/** @type {Map<HTMLElement, Chart>} */
const charts = new Map();

class Chart {
  /** @param {HTMLElement} figure */
  constructor(figure) {
    this.figure = figure;
    this.plot = /** @type {HTMLElement} */ (figure.querySelector(".chart-plot"));
    this.readout = figure.querySelector(".chart-readout");
    /** @type {any} */
    this.uplot = null;
    this.shown = "";
    this.shape = "";
    this.sizes = new ResizeObserver(() => this.uplot?.setSize(this.size()));
    this.sizes.observe(this.plot);
  }

  size() {
    return { width: Math.max(80, this.plot.clientWidth), height: Math.max(60, this.plot.clientHeight) };
  }

  /** Draw what the figure has now, if it is something else than before. */
  async draw(anew = false) {
    const { chart, chartUrl } = this.figure.dataset;
    const text = chart ?? (chartUrl ? await (await fetch(chartUrl)).text() : "");
    if (!text || (text === this.shown && !anew && this.plot.hasChildNodes())) return;
    this.shown = text;
    /** @type {ChartData} */
    const data = JSON.parse(text);
    this.data = data;
    const drawn = [data.x, ...data.series.map(({ values }) => values)];
    const shape = JSON.stringify([{ ...data, x: 0, series: data.series.map((each) => ({ ...each, values: 0 })) }, widest(data)]);
    if (shape === this.shape && this.uplot && this.plot.hasChildNodes() && data.x.length && !anew) {
      this.uplot.setData(drawn);
      this.tell(this.uplot.cursor.idx ?? null);
      return;
    }
    this.shape = shape;
    this.uplot?.destroy();
    this.uplot = null;
    this.plot.replaceChildren();
    this.readout?.replaceChildren();
    if (!data.x.length) {
      const words = document.createElement("p");
      words.className = "empty";
      words.textContent = "Nothing is known of this time.";
      this.plot.append(words);
      return;
    }
    this.uplot = new UPlot(this.options(data), drawn, this.plot);
    this.tell(null);
  }

  /** @param {ChartData} data */
  options(data) {
    const style = getComputedStyle(this.figure);
    const font = `12px ${style.fontFamily}`;
    const [muted, line, edge] = colours(this.figure, ["muted", "line", "edge"]);
    const drawn = colours(this.figure, data.series.map(({ colour }) => colour));
    const axis = { stroke: muted, font, ticks: { show: false }, grid: { stroke: line, width: 1 } };
    return {
      ...this.size(),
      legend: { show: false },
      tzDate: (/** @type {number} */ x) => UPlot.tzDate(new Date(1e3 * x), "UTC"),
      cursor: {
        y: false,
        points: { size: 7 },
        drag: { x: false, y: false },
        ...(data.group ? { sync: { key: data.group } } : {}),
      },
      scales: {
        x: { time: true, range: () => span(/** @type {ChartData} */ (this.data).x) },
        y: { range: (/** @type {any} */ _, /** @type {number | null} */ low, /** @type {number | null} */ high) => range(data, low, high) },
      },
      axes: [
        { ...axis, grid: { show: false }, size: 26, gap: 6, space: 70, values: timeLabels },
        { ...axis, size: 14 + 7 * widest(data), gap: 6, space: 34, values: (/** @type {any} */ _, /** @type {number[]} */ each) => each.map((value) => NUMBER.format(value)) },
      ],
      series: [
        {},
        ...data.series.map(({ name, area, dashed }, number) => ({
          label: name,
          stroke: drawn[number],
          width: 1.5,
          fill: area ? withAlpha(drawn[number], 0.16) : undefined,
          dash: dashed ? [5, 4] : undefined,
          points: { show: data.x.length < 3 },
          spanGaps: false,
        })),
      ],
      hooks: {
        setCursor: [(/** @type {any} */ plot) => this.tell(plot.cursor.idx ?? null)],
        draw: [(/** @type {any} */ plot) => paintMarks(plot, data.marks ?? [], edge, muted, style.fontFamily)],
        ready: [(/** @type {any} */ plot) => this.follow(plot, data)],
      },
    };
  }

  /**
   * A click leads to the page at its time.
   * @param {any} plot
   * @param {ChartData} data
   */
  follow(plot, data) {
    if (!data.href) return;
    plot.over.classList.add("chart-link");
    plot.over.addEventListener("click", () => {
      const { idx } = plot.cursor;
      const x = this.data?.x[idx ?? -1];
      if (x !== undefined) location.assign((data.href ?? "").replace("{x}", String(Math.round(x))));
    });
  }

  /**
   * The values at a place, or the last ones, in words below the chart.
   * @param {number | null} index
   */
  tell(index) {
    const { data, readout } = this;
    if (!data || !readout || !data.x.length) return;
    const at = index ?? data.x.length - 1;
    const keys = data.series.map(({ name, colour, values }) => {
      const key = document.createElement("span");
      key.className = "chart-key";
      const swatch = document.createElement("i");
      swatch.className = "chart-swatch";
      swatch.style.background = `var(--${colour})`;
      const value = values[at];
      key.append(swatch, `${name} ${value === null || value === undefined ? "–" : EXACT.format(value)}`);
      return key;
    });
    const moment = document.createElement("span");
    moment.textContent = MOMENT.format(1e3 * data.x[at]);
    readout.replaceChildren(...keys, moment);
  }

  end() {
    this.sizes.disconnect();
    this.uplot?.destroy();
  }
}

/**
 * The time that is shown: a minute at least, or one point would be in the middle of years.
 * @param {number[]} x
 */
function span(x) {
  const [from, to] = [x[0], x[x.length - 1]];
  return to - from < 60 ? [from - 30, to + 30] : [from, to];
}

/**
 * Characters of the longest number at the axis.
 * @param {ChartData} data
 */
function widest({ series, low, high }) {
  const values = series.flatMap((each) => each.values).filter((each) => each !== null);
  const ends = [low ?? Math.min(0, ...values), high ?? Math.max(1, ...values)];
  return Math.max(4, ...ends.map((each) => NUMBER.format(each).length));
}

/**
 * The ends of the axis: from zero, unless values or the chart say otherwise, with air above.
 * @param {ChartData} data @param {number | null} low @param {number | null} high
 */
function range(data, low, high) {
  const from = data.low ?? Math.min(0, low ?? 0);
  const to = data.high ?? (high ?? 1) + ((high ?? 1) - from) * 0.08;
  return [from, to > from ? to : from + 1];
}

/**
 * Clock times; the day where a day begins or ticks are days.
 * @param {any} _
 * @param {number[]} ticks
 */
function timeLabels(_, ticks) {
  return ticks.map((each) => (each % 86_400 === 0 ? MONTH : CLOCK).format(1e3 * each));
}

/**
 * @param {any} plot @param {{x: number, label: string}[]} marks @param {string} edge @param {string} muted @param {string} font
 */
function paintMarks(plot, marks, edge, muted, font) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.font = `${12 * devicePixelRatio}px ${font}`;
  ctx.textAlign = "left";
  for (const { x, label } of marks) {
    const at = Math.round(plot.valToPos(x, "x", true));
    if (at < bbox.left || at > bbox.left + bbox.width) continue;
    ctx.fillStyle = edge;
    ctx.fillRect(at, bbox.top, devicePixelRatio, bbox.height);
    ctx.fillStyle = muted;
    ctx.fillText(label, at + 4 * devicePixelRatio, bbox.top + 12 * devicePixelRatio);
  }
  ctx.restore();
}

/**
 * @param {HTMLElement} parent
 * @param {string[]} names
 */
function colours(parent, names) {
  const probe = document.createElement("i");
  probe.hidden = true;
  parent.append(probe);
  const found = names.map((name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  });
  probe.remove();
  return found;
}

/**
 * @param {string} colour as getComputedStyle has it
 * @param {number} alpha
 */
function withAlpha(colour, alpha) {
  return colour.replace(/^rgb\((.*)\)$/, (_, parts) => `rgba(${parts}, ${alpha})`);
}

/** Draw figures that are new or have new numbers, and forget those that are gone. */
function look(anew = false) {
  for (const [figure, chart] of charts) {
    if (figure.isConnected && figure.contains(chart.plot)) continue;
    chart.end();
    charts.delete(figure);
  }
  for (const figure of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("figure.chart"))) {
    const known = charts.get(figure) ?? new Chart(figure);
    charts.set(figure, known);
    void known.draw(anew);
  }
}

look();
document.addEventListener("htmx:after:swap", () => look());
document.addEventListener("roost:theme", () => look(true));
for (const media of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) matchMedia(media).addEventListener("change", () => look(true));
