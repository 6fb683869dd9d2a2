// Where the names of nodes go: beside their dots, within the picture, none over another, and where possible not over a
// line. What finds no room has none.

export interface Dot {
  id: string;
  text: string;
  x: number;
  y: number;
  size: number;
}

export interface Label {
  id: string;
  text: string;
  left: number;
  top: number;
  width: number;
}

export type Line = readonly [Dot, Dot];

interface Room {
  width: number;
  height: number;
}

type Box = [left: number, top: number, right: number, bottom: number];

export const HEIGHT = 16; // as in the style sheet
const FONT = "12px system-ui, sans-serif";
const LENGTHS = [60, 34, 20]; // characters, from much room to little
const MOST = 60;
const GAP = 3;

const pen = document.createElement("canvas").getContext("2d")!;

/** Cut between words, unless that leaves too little. */
function shorten(text: string, length: number): string {
  if (text.length <= length) return text;
  const cut = text.slice(0, length);
  const whole = cut.replace(/\s+\S*$/, "");
  return whole.length > length * 0.75 ? `${whole} …` : `${cut}…`;
}

const meet = (one: Box, other: Box) => one[0] < other[2] && other[0] < one[2] && one[1] < other[3] && other[1] < one[3];

function width(text: string): number {
  pen.font = FONT;
  return Math.ceil(pen.measureText(text).width) + 4;
}

/** Whether a line runs through a box: what is left of the line, cut off at each side in turn. */
function crosses([from, to]: Line, [left, top, right, bottom]: Box): boolean {
  let [enters, leaves] = [0, 1];
  for (const [start, way, low, high] of [[from.x, to.x - from.x, left, right], [from.y, to.y - from.y, top, bottom]] as const) {
    if (way === 0) {
      if (start < low || start > high) return false;
      continue;
    }
    const [one, other] = [(low - start) / way, (high - start) / way];
    enters = Math.max(enters, Math.min(one, other));
    leaves = Math.min(leaves, Math.max(one, other));
  }
  return enters < leaves;
}

/** The first of the dots come first. */
export function placed(dots: Dot[], lines: Line[], room: Room): Label[] {
  const taken: Box[] = dots.slice(0, 300).map(({ x, y, size }) => [x - size, y - size, x + size, y + size]);
  const labels: Label[] = [];
  for (const dot of dots) {
    if (labels.length === MOST) break;
    const label = spot(dot, lines, room, taken);
    if (!label) continue;
    taken.push([label.left, label.top, label.left + label.width, label.top + HEIGHT]);
    labels.push(label);
  }
  return labels;
}

/** Right of the dot, left of it, below or above: the free place with the fewest lines through it. */
function spot(dot: Dot, lines: Line[], room: Room, taken: Box[]): Label | null {
  const middle = dot.y - HEIGHT / 2;
  for (const length of LENGTHS) {
    const text = shorten(dot.text, length);
    const wide = width(text);
    const across = Math.max(0, Math.min(dot.x - wide / 2, room.width - wide));
    const spots: [number, number][] = [
      [dot.x + dot.size + GAP, middle],
      [dot.x - dot.size - GAP - wide, middle],
      [across, dot.y + dot.size + GAP],
      [across, dot.y - dot.size - GAP - HEIGHT],
    ];
    const free = spots.flatMap(([left, top]) => {
      const box: Box = [left, top, left + wide, top + HEIGHT];
      const inside = left >= 0 && top >= 0 && box[2] <= room.width && box[3] <= room.height;
      if (!inside || taken.some((other) => meet(box, other))) return [];
      return [{ left, top, crossed: lines.filter((line) => crosses(line, box)).length }];
    });
    const [best] = free.sort((one, other) => one.crossed - other.crossed);
    if (best) return { id: dot.id, text, left: best.left, top: best.top, width: wide };
  }
  return null;
}
