// @ts-check
// What the map asks of the server.
//
//   layout  JSON {"layout": id, "count": n, "groups": [{zone, rack, cell, count}, …]} in the order of hosts
//   levels  a byte a host of the layout (query: layout, and the fields of the map's form): 0…31 a level, 32…35 a state.
//           X-Roost-Commit; X-Roost-Topic: the topic of changes, if there are any; X-Roost-Scale: JSON of a Scale.
//   host    JSON {name, href, facts: [[label, value], …]} (query: layout, index)
//   find    JSON {"hosts": [[index, name], …], "more": n} (query: layout, search)
//
// Each answer to a request with a layout has X-Roost-Layout, the newest one; where it is another, the body does not count
// and the layout is read again. (409 says the same, but is an error on the console of each page that is open then.)
//
// Changes come as events of the topic: {"layout": id, "commit": n, "changes": [[index, byte], …]}.

/**
 * @typedef {{name: string, href: string, facts: [string, string][]}} Host
 * @typedef {{levels: Uint8Array, commit: number, topic: string, scale: import("./map_legend.js").Scale | null}} Levels
 */

const KEPT = 500;

/** An answer that is none. */
export class Refused extends Error {
  /** @param {Response} response */
  constructor(response) {
    super(`${response.status} ${response.statusText}`);
  }
}

/** The layout that was asked for is no longer the newest. */
export class OldLayout extends Error {}

export class MapData {
  /** @param {DOMStringMap} addresses of a map: layoutUrl, levelsUrl, hostUrl, findUrl */
  constructor(addresses) {
    this.addresses = addresses;
    this.layout = "";
    /** @type {Map<number, Host>} */
    this.hosts = new Map();
    /** @type {Map<string, AbortController>} */
    this.asking = new Map();
  }

  async readLayout() {
    const found = await (await get(this.addresses.layoutUrl, {})).json();
    this.layout = found.layout;
    this.hosts.clear();
    // A group's name and first host follow from the rest; of thousands of groups they would be most of the answer.
    let first = 0;
    const groups = found.groups.map((/** @type {{rack: string, cell: string, count: number}} */ each) => {
      const group = { ...each, name: each.rack || each.cell || "hosts", first };
      first += each.count;
      return group;
    });
    return /** @type {{layout: string, count: number, groups: import("./map_layout.js").Group[]}} */ ({ ...found, groups });
  }

  /**
   * @param {Iterable<[string, string]>} fields
   * @returns {Promise<Levels>}
   */
  async readLevels(fields) {
    const response = await get(this.addresses.levelsUrl, { ...Object.fromEntries(fields), layout: this.layout });
    const { headers } = response;
    const scale = headers.get("X-Roost-Scale");
    this.hosts.clear(); // their facts are as old as the levels
    return {
      levels: new Uint8Array(await response.arrayBuffer()),
      commit: Number(headers.get("X-Roost-Commit")),
      topic: headers.get("X-Roost-Topic") ?? "",
      scale: scale ? JSON.parse(scale) : null,
    };
  }

  /**
   * A host's name and facts; null if the same place asked for another one meanwhile.
   * @param {number} index
   * @param {"card" | "tip"} place where they are shown
   */
  async readHost(index, place) {
    this.asking.get(place)?.abort();
    const kept = this.hosts.get(index);
    if (kept) return kept;
    const asking = new AbortController();
    this.asking.set(place, asking);
    try {
      const response = await get(this.addresses.hostUrl, { layout: this.layout, index }, asking.signal);
      const found = /** @type {Host} */ (await response.json());
      if (this.hosts.size >= KEPT) this.hosts.clear();
      this.hosts.set(index, found);
      return found;
    } catch (error) {
      if (asking.signal.aborted) return null;
      throw error;
    }
  }

  /** @param {string} search */
  async find(search) {
    const found = await (await get(this.addresses.findUrl, { layout: this.layout, search })).json();
    return /** @type {{hosts: [number, string][], more: number}} */ (found);
  }
}

/**
 * @param {string | undefined} url
 * @param {Record<string, string | number>} query
 * @param {AbortSignal} [signal]
 */
async function get(url, query, signal) {
  const address = new URL(url ?? "", location.href);
  for (const [key, value] of Object.entries(query)) address.searchParams.set(key, String(value));
  const response = await fetch(address, { signal, credentials: "same-origin" });
  const newest = response.headers.get("X-Roost-Layout");
  if (response.status === 409 || (newest && "layout" in query && newest !== query.layout))
    throw new OldLayout("the hosts are being put in another order");
  if (!response.ok) throw new Refused(response);
  return response;
}
