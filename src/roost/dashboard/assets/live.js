// @ts-check
// What is live on a page: events of the server, regions that are fetched again, and what is said of both.
//
//   <body data-live="/ui/live">                       the address of the event stream; without it nothing is live
//   <div data-live-topic="fleet" hx-get="…" hx-trigger="live" hx-swap="innerMorph"> a region that an event makes old:
//       it gets the event `live`, by which htmx fetches it, at most every data-live-pause milliseconds (2,000), and not
//       while the pointer or the focus is in it or the page is not seen; data-stale says that something newer waits
//   <span class="live-state" data-live-state>         shows whether events come: data-state = live, lost or paused
//   <button data-live-pause-button aria-pressed>      stops and continues all regions
//   <p role="status" data-live-status>                says politely, not more than every 15 s, the data-announce of a
//       region whose sentence changed
//
// A region with data-live-seen is not old after an event whose data is the same: a server sends the newest of each topic
// when a stream begins.
//
// Other scripts write the topics that they want into data-live-want of their element. `document` gets `roost:live`
// ({topic, data}) and `roost:live-state` ("live" or "lost"; before "live" events may have been missed, so that a script
// reads again what it shows).

import { LiveStream } from "./live_stream.js";

const PAUSE = 2_000;
const ANNOUNCE = 15_000;

const url = document.body.dataset.live;
/** @type {WeakMap<Element, number>} when regions were fetched */
const fetched = new WeakMap();
/** @type {(topics: string[]) => void} */
let subscribe = () => {};
let subscribed = "";
let stopped = false;
let state = "";

function regions() {
  return /** @type {HTMLElement[]} */ ([...document.querySelectorAll("[data-live-topic]")]);
}

/** Ask for the topics of the regions that are on the page now, and of other scripts. */
function ask() {
  /** @type {Set<string>} */
  const topics = new Set();
  for (const region of regions()) for (const topic of topicsOf(region.dataset.liveTopic)) topics.add(topic);
  for (const each of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-live-want]")))
    for (const topic of topicsOf(each.dataset.liveWant)) topics.add(topic);
  const list = [...topics].sort();
  if (list.join("\n") === subscribed) return;
  subscribed = list.join("\n");
  subscribe(list);
}

/** @param {string} [text] */
function topicsOf(text) {
  return (text ?? "").split(" ").filter(Boolean);
}

/** @param {HTMLElement} region */
function busy(region) {
  return stopped || document.hidden || region.matches(":hover") || region.matches(":focus-within");
}

/** Fetch the regions that are old, may be fetched and were not just now. */
function refresh() {
  const now = performance.now();
  for (const region of regions()) {
    if (region.dataset.stale === undefined || busy(region)) continue;
    if (now - (fetched.get(region) ?? -Infinity) < Number(region.dataset.livePause ?? PAUSE)) continue;
    fetched.set(region, now);
    delete region.dataset.stale;
    region.dispatchEvent(new CustomEvent("live", { bubbles: false }));
  }
}

/** @param {import("./live_stream.js").Message} message */
function hear(message) {
  if (message.kind === "state") {
    // A stream that is new, or back: whatever is shown may be old.
    if (message.state === "live" && state === "lost") for (const region of regions()) region.dataset.stale = "";
    state = message.state;
    show();
    document.dispatchEvent(new CustomEvent("roost:live-state", { detail: state }));
    return;
  }
  for (const region of regions())
    if (topicsOf(region.dataset.liveTopic).includes(message.topic) && region.dataset.liveSeen !== message.data)
      region.dataset.stale = "";
  document.dispatchEvent(new CustomEvent("roost:live", { detail: { topic: message.topic, data: message.data } }));
}

function show() {
  const words = { live: "Live", lost: "Not live: connecting again", paused: "Paused", "": "" };
  const shown = stopped ? "paused" : state;
  for (const each of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-live-state]"))) {
    if (each.dataset.state === shown) continue;
    each.dataset.state = shown;
    each.textContent = words[/** @type {keyof typeof words} */ (shown)];
  }
}

/** @type {Map<string, string>} the sentences last seen, by the region's id */
const sentences = new Map();
let announced = -Infinity;

/** Say what changed, one sentence at a time. The first sentence of a region is what the reader has just read. */
function announce() {
  const status = document.querySelector("[data-live-status]");
  if (!status || performance.now() - announced < ANNOUNCE) return;
  for (const region of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-announce]"))) {
    const sentence = region.dataset.announce ?? "";
    const before = sentences.get(region.id);
    sentences.set(region.id, sentence);
    if (before === undefined || before === sentence) continue;
    status.textContent = sentence;
    announced = performance.now();
    return;
  }
}

function start() {
  if (!url) return;
  const address = new URL(url, location.href).href;
  if (typeof SharedWorker === "function") {
    // Under `require-trusted-types-for 'script'` the address of a worker needs the policy "roost".
    const script = new URL("./live_worker.js", import.meta.url).href;
    const policy = /** @type {any} */ (globalThis).trustedTypes?.createPolicy("roost", {
      createScriptURL: (/** @type {string} */ each) => each,
    });
    const worker = new SharedWorker(policy?.createScriptURL(script) ?? script, { type: "module", name: "roost-live" });
    worker.port.onmessage = ({ data }) => hear(data);
    subscribe = (topics) => worker.port.postMessage({ url: address, topics });
    addEventListener("pagehide", () => subscribe([]));
    addEventListener("pageshow", (event) => event.persisted && subscribe(subscribed.split("\n").filter(Boolean)));
  } else {
    const stream = new LiveStream(address);
    subscribe = (topics) => stream.listen(document, topics, hear);
  }
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("[data-live-pause-button]") : null;
    if (!button) return;
    stopped = !stopped;
    button.setAttribute("aria-pressed", String(stopped));
    show();
  });
  setInterval(() => {
    ask();
    refresh();
    announce();
  }, 250);
  ask();
  announce();
}

start();
