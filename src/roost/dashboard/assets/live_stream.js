// @ts-check
// One EventSource for several listeners, of all topics that any of them wants. In the shared worker the listeners are
// the pages of a browser; where there is no shared worker, the one page.
//
//   GET <url>?topic=A&topic=B   text/event-stream; the name of each event is its topic
//
// A change of the topics opens a new stream. Whoever listens hears "open" then, and reads again what it shows: events
// between two streams are lost.

const FIRST_PAUSE = 1_000; // milliseconds before a stream that a server has ended is opened again, doubled each time
const LONGEST_PAUSE = 30_000;
const GATHER = 50; // milliseconds in which several changes of the topics make one new stream

/**
 * @typedef {{kind: "event", topic: string, data: string} | {kind: "state", state: "live" | "lost"}} Message
 */

export class LiveStream {
  /** @param {string} url */
  constructor(url) {
    this.url = url;
    /** @type {Map<object, {topics: Set<string>, hear: (message: Message) => void}>} */
    this.listeners = new Map();
    /** @type {EventSource | null} */
    this.source = null;
    this.pause = FIRST_PAUSE;
    this.timer = 0;
    this.opened = "";
    /** @type {"live" | "lost" | null} */
    this.state = null;
  }

  /**
   * Set the topics of a listener; none ends it.
   * @param {object} listener
   * @param {string[]} topics
   * @param {(message: Message) => void} hear
   */
  listen(listener, topics, hear) {
    if (topics.length) this.listeners.set(listener, { topics: new Set(topics), hear });
    else this.listeners.delete(listener);
    if (topics.length && this.state && this.wanted() === this.opened) hear({ kind: "state", state: this.state });
    this.connectIn(GATHER);
  }

  /** @returns {string} the wanted topics as a query, always in the same order */
  wanted() {
    const topics = new Set([...this.listeners.values()].flatMap((each) => [...each.topics]));
    return [...topics].sort().map((each) => `topic=${encodeURIComponent(each)}`).join("&");
  }

  /** @param {number} milliseconds */
  connectIn(milliseconds) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.connect(), milliseconds);
  }

  connect() {
    const wanted = this.wanted();
    if (this.source && this.source.readyState !== EventSource.CLOSED && wanted === this.opened) return;
    this.source?.close();
    this.source = null;
    this.opened = wanted;
    if (!wanted) {
      this.state = null;
      return;
    }
    const source = new EventSource(`${this.url}${this.url.includes("?") ? "&" : "?"}${wanted}`);
    this.source = source;
    source.onopen = () => {
      this.pause = FIRST_PAUSE;
      this.tell("live");
    };
    source.onerror = () => {
      if (source !== this.source) return;
      this.tell("lost");
      // The browser tries again by itself but after an answer that is no stream.
      if (source.readyState !== EventSource.CLOSED) return;
      this.connectIn(this.pause);
      this.pause = Math.min(2 * this.pause, LONGEST_PAUSE);
    };
    for (const topic of new Set([...this.listeners.values()].flatMap((each) => [...each.topics]))) {
      source.addEventListener(topic, (event) => {
        const message = { kind: /** @type {const} */ ("event"), topic, data: event.data };
        for (const { topics, hear } of this.listeners.values()) if (topics.has(topic)) hear(message);
      });
    }
  }

  /** @param {"live" | "lost"} state */
  tell(state) {
    this.state = state;
    for (const { hear } of this.listeners.values()) hear({ kind: "state", state });
  }
}
