// @ts-check
// The shared worker that holds the event stream of all pages of a browser, for browsers allow six connections a host.
// A page sends {url, topics}, an empty list when it goes, and receives the messages of the stream.

import { LiveStream } from "./live_stream.js";

/** @type {Map<string, LiveStream>} */
const streams = new Map();

addEventListener("connect", (connection) => {
  const port = /** @type {MessageEvent} */ (connection).ports[0];
  port.onmessage = ({ data: { url, topics } }) => {
    let stream = streams.get(url);
    if (!stream) streams.set(url, (stream = new LiveStream(url)));
    stream.listen(port, topics, (message) => port.postMessage(message));
  };
});
