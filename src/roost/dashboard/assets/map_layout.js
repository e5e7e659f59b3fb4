// @ts-check
// The places of hosts on the map, without a document: each host is one square of a grid.
//
// Groups (a rack's hosts of one cell) are boxes, filled row by row; boxes stand in shelves below the name of their zone.
// The same groups in the same width always have the same places: an order that changed with the numbers would move
// hosts under the pointer.

/**
 * @typedef {{name: string, zone: string, rack: string, cell: string, first: number, count: number}} Group
 * @typedef {{name: string, top: number, bottom: number, count: number}} Zone
 * @typedef {{pitch: number, columns: number, rows: number, strip: number, heading: number, boxes: Int32Array, zones: Zone[],
 *   slots: Int32Array, places: Int32Array, groupOf: Int32Array}} Layout
 *   pitch: CSS pixels of a square at the smallest scale; boxes: x, y, width, height in squares, four numbers a group;
 *   slots: the host at y * columns + x, or -1; places: the reverse; groupOf: the index of each host's group;
 *   strip, heading: squares above a box and below the begin of a zone, for their names
 */

const PITCHES = [44, 40, 36, 32, 28, 24, 22, 20, 18, 16, 14, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2];
const WIDER = 1.6; // a box is so many times wider than high: names stand above it
const LABEL = 14; // pixels of a group's name
const HEADING = 22; // pixels of a zone's name
const ROOM = 44; // pixels of a box in whose width a name is worth its line

/**
 * @param {Group[]} groups in the order of hosts
 * @param {number} count
 * @param {number} width CSS pixels
 * @param {number} height CSS pixels that should be enough; with the smallest squares it may be more
 * @returns {Layout}
 */
export function arrange(groups, count, width, height) {
  let packed = null;
  let pitch = 0;
  for (pitch of PITCHES) {
    if (count * pitch * pitch > width * height && pitch > PITCHES[PITCHES.length - 1]) continue;
    packed = pack(groups, Math.max(1, Math.floor(width / pitch)), pitch);
    if (packed.rows * pitch <= height) break;
  }
  const { columns, rows, strip, heading, boxes, zones } = /** @type {NonNullable<typeof packed>} */ (packed);
  const slots = new Int32Array(columns * rows).fill(-1);
  const places = new Int32Array(count);
  const groupOf = new Int32Array(count);
  groups.forEach((group, number) => {
    const [x, y, w] = boxes.subarray(4 * number, 4 * number + 3);
    for (let each = 0; each < group.count; each++) {
      const place = (y + Math.floor(each / w)) * columns + x + (each % w);
      slots[place] = group.first + each;
      places[group.first + each] = place;
      groupOf[group.first + each] = number;
    }
  });
  return { pitch, columns, rows, strip, heading, boxes, zones, slots, places, groupOf };
}

/**
 * @param {Group[]} groups
 * @param {number} columns squares in the width
 * @param {number} pitch
 */
function pack(groups, columns, pitch) {
  const boxes = new Int32Array(4 * groups.length);
  const sizes = groups.map(({ count }) => shape(count, columns));
  const widths = sizes.map(([w]) => w).sort((a, b) => a - b);
  const labelled = groups.length > 1 && (widths[widths.length >> 1] ?? 0) * pitch >= ROOM;
  const strip = labelled ? Math.ceil(LABEL / pitch) : pitch > 3 && pitch < LABEL ? 2 : 1;
  const heading = groups.some(({ zone }) => zone) ? Math.ceil(HEADING / pitch) : 0;
  /** @type {Zone[]} */
  const zones = [];
  // The shelf, and in it the column to which the last box went, in which smaller ones stand below each other.
  const shelf = { top: 0, height: 0 };
  const column = { x: 0, width: 0, y: 0 };

  function nextShelf(gap = 0) {
    shelf.top += shelf.height + gap;
    shelf.height = 0;
    Object.assign(column, { x: 0, width: 0, y: 0 });
  }

  groups.forEach((group, number) => {
    if (zones.length === 0 || group.zone !== zones[zones.length - 1].name) {
      nextShelf(zones.length ? 1 : 0);
      zones.push({ name: group.zone, top: shelf.top, bottom: 0, count: 0 });
      shelf.top += heading;
    }
    const [w, h] = sizes[number];
    const tall = h + strip;
    const below = column.y + tall <= shelf.height && w <= 1.5 * column.width && column.x + w <= columns;
    if (below) column.width = Math.max(column.width, w);
    else {
      const x = column.x + column.width + (column.width ? 1 : 0);
      if (column.width && (x + w > columns || tall > Math.max(shelf.height, 1.25 * shelf.height + 1))) nextShelf();
      else column.x = x;
      column.width = w;
      column.y = 0;
    }
    boxes.set([column.x, shelf.top + column.y + strip, w, h], 4 * number);
    column.y += tall;
    shelf.height = Math.max(shelf.height, column.y);
    const zone = zones[zones.length - 1];
    zone.bottom = shelf.top + shelf.height;
    zone.count += group.count;
  });
  return { columns, rows: shelf.top + shelf.height + 1, strip, heading, boxes, zones };
}

/**
 * The width and height of a box, as tight as its width allows.
 * @param {number} count
 * @param {number} columns
 */
function shape(count, columns) {
  const height = Math.ceil(count / Math.max(1, Math.min(columns, Math.ceil(Math.sqrt(count * WIDER)))));
  return [height ? Math.ceil(count / height) : 0, height];
}

/**
 * The host that is next to one in a direction: straight ahead, or as near to that as there is one.
 * @param {Layout} layout
 * @param {number} index
 * @param {number} dx
 * @param {number} dy
 * @returns {number} the same host where there is none
 */
export function neighbour(layout, index, dx, dy) {
  const { columns, rows, slots, places } = layout;
  const x = places[index] % columns;
  const y = Math.floor(places[index] / columns);
  for (let step = 1; step < Math.max(columns, rows); step++) {
    for (let aside = 0; aside <= step; aside++) {
      for (const side of aside ? [-aside, aside] : [0]) {
        const [toX, toY] = [x + dx * step + (dx ? 0 : side), y + dy * step + (dy ? 0 : side)];
        if (toX < 0 || toY < 0 || toX >= columns || toY >= rows) continue;
        const found = slots[toY * columns + toX];
        if (found >= 0) return found;
      }
    }
  }
  return index;
}
