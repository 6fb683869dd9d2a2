// Text for people: times, numbers, and how two texts differ.

const FORMAT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const AGO = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });

export const when = (iso?: string) => (iso ? FORMAT.format(new Date(iso)) : "");

export function ago(iso: string, now = Date.now()): string {
  const seconds = (Date.parse(iso) - now) / 1000;
  const steps: [Intl.RelativeTimeFormatUnit, number][] = [
    ["year", 31_536_000], ["month", 2_592_000], ["day", 86_400], ["hour", 3_600], ["minute", 60],
  ];
  for (const [unit, length] of steps) {
    if (Math.abs(seconds) >= length) return AGO.format(Math.round(seconds / length), unit);
  }
  return AGO.format(Math.round(seconds), "second");
}

export const percent = (share: number) => `${Math.round(share * 100)} %`;
export const count = (number: number) => number.toLocaleString();

/** The text that other readers see: a decision with its reasoning. */
export function textOf(memory: { content: string; detail: Record<string, unknown> }): string {
  const more = memory.detail["reasoning"] ?? memory.detail["next_steps"];
  return more ? `${memory.content}\n\n${String(more)}` : memory.content;
}

export interface Piece {
  kind: "same" | "gone" | "new";
  text: string;
}

/** Word by word: the longest common run of words, what is gone before what is new. Long texts line by line. */
export function difference(before: string, after: string): Piece[] {
  const split = before.length + after.length > 20_000 ? /(?<=\n)/ : /(?<=\s)|(?=\s)/;
  const a = before.split(split);
  const b = after.split(split);
  if (a.length * b.length > 4_000_000) return [{ kind: "gone", text: before }, { kind: "new", text: after }];
  const width = b.length + 1;
  const common = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i * width + j] =
        a[i] === b[j]
          ? common[(i + 1) * width + j + 1]! + 1
          : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
    }
  }
  const pieces: Piece[] = [];
  const add = (kind: Piece["kind"], text: string) => {
    const last = pieces.at(-1);
    if (last?.kind === kind) last.text += text;
    else pieces.push({ kind, text });
  };
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      add("same", a[i]!);
      i++;
      j++;
    } else if (j >= b.length || (i < a.length && common[(i + 1) * width + j]! >= common[i * width + j + 1]!)) {
      add("gone", a[i++]!);
    } else {
      add("new", b[j++]!);
    }
  }
  return pieces;
}
