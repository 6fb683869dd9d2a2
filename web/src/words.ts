// Text for people: times, numbers, what a memory is called, and how two texts differ.

import { opening, unmarked } from "./markdown";

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

/** 1 when new, half of it after ninety days: what the engine calls recency. */
export const recency = (iso: string, now = Date.now()) => 0.5 ** (Math.max(0, now - Date.parse(iso)) / (90 * 86_400_000));

/** "1.2 MB". */
export function size(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const step = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  const number = bytes / 1000 ** step;
  return `${number.toFixed(step && number < 100 ? 1 : 0)} ${units[step]}`;
}

/** "3 memories", "1 memory". */
export const many = (number: number, one: string, more = `${one}s`) => `${count(number)} ${number === 1 ? one : more}`;

/** What is written separated by commas, or another sign. */
export const separated = (text: string, sign = ",") => text.split(sign).map((piece) => piece.trim()).filter(Boolean);

const ENOUGH = 1000; // characters, to find a first sentence

interface Titled {
  topic?: string;
  title: string;
  content: string;
}

/** Whether the title was only cut off the text: then the text says it better. */
export const untitled = (memory: Titled) =>
  !memory.topic && memory.content.trim().split(/\s+/, 80).join(" ").startsWith(memory.title.replace(/\.{3}$/, "").trimEnd());

/** What a memory is called: a decision by its topic, a note by its title or its first sentence, without marks. */
export const headline = (memory: Titled) =>
  memory.topic ?? (untitled(memory) ? opening(memory.content.slice(0, ENOUGH)).title : unmarked(memory.title));

/** What a memory says, in a few words: of a decision what was decided. */
export const called = (memory: Titled) => (memory.topic ? opening(memory.content.slice(0, ENOUGH)).title : headline(memory));

/** The text that other readers see: a decision with its reasoning. */
export function textOf(memory: { content: string; detail: Record<string, unknown> }): string {
  const more = memory.detail["reasoning"] ?? memory.detail["next_steps"];
  return more ? `${memory.content}\n\n${String(more)}` : memory.content;
}

export interface Piece {
  kind: "same" | "gone" | "new";
  text: string;
}

/** Words of which the texts have more in common than not: then a difference word by word says something. */
export function alike(one: string, other: string): boolean {
  const [a, b] = [wordsOf(one), wordsOf(other)];
  return 2 * a.intersection(b).size > Math.max(a.size, b.size);
}

const wordsOf = (text: string) => new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu));

const SMALL = new Set("a an and as at be by for from has her his in is it its of on or since that the to was were will with".split(" "));

/** What one text says and the other does not: all such words of alike texts, else only names, numbers and the like. */
export function own(text: string, other: string): string[] {
  const known = wordsOf(other);
  const strange = (text.match(/[\p{L}\p{N}]+/gu) ?? []).filter((word) => !known.has(word.toLowerCase()) && !SMALL.has(word.toLowerCase()));
  if (alike(text, other)) return strange;
  const sentences = text.matchAll(/(?:^|[.!?:]\s+)\P{L}*([\p{L}]+)/gu); // a capital there means nothing
  const first = new Set([...sentences].map((found) => found[1]));
  return strange.filter((word) => /\p{N}/u.test(word) || (/^\p{Lu}/u.test(word) && !first.has(word)));
}

/** Word by word: the longest common run of words, what is gone before what is new. Long texts line by line. */
export function difference(before: string, after: string): Piece[] {
  const split = before.length + after.length > 20_000 ? /(?<=\n)/ : /(?<=\s)(?=\S)/; // words with the space behind them
  const a = before.split(split);
  const b = after.split(split);
  if (a.length * b.length > 4_000_000) return [{ kind: "gone", text: before }, { kind: "new", text: after }];
  const same = (i: number, j: number) => a[i]!.trim() === b[j]!.trim();
  const width = b.length + 1;
  const common = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i * width + j] =
        same(i, j)
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
    if (i < a.length && j < b.length && same(i, j)) {
      add("same", b[j]!);
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
