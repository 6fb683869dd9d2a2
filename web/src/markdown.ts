// The Markdown that notes are written in, read into a tree of plain values. The page draws the tree with its own
// elements, so nothing in a text ever becomes markup, and nothing is loaded: a picture is a link to it. What is not
// understood stays as it was typed.

export type Inline =
  | { kind: "text"; text: string }
  | { kind: "code"; text: string }
  | { kind: "id"; text: string }
  | { kind: "strong" | "em" | "del"; parts: Inline[] }
  | { kind: "link"; href: string; parts: Inline[] };

export type Block =
  | { kind: "heading"; level: number; parts: Inline[] }
  | { kind: "text"; source: string; parts: Inline[] }
  | { kind: "code"; text: string }
  | { kind: "quote"; blocks: Block[] }
  | { kind: "list"; ordered: boolean; start: number; items: Item[] }
  | { kind: "table"; head: Inline[][]; rows: Inline[][][] }
  | { kind: "rule" };

/** Of a list; `done` if it is a task. */
export interface Item {
  done?: boolean;
  blocks: Block[];
}

const DEEPEST = 6; // lists in lists; beyond that it is text
// Every run is bounded: a text of unpaired marks is read in a time that grows with its length only.
const INLINE = new RegExp(
  [
    String.raw`\\(?<escaped>[\\*_\x60#[\]~])`,
    String.raw`(?<ticks>\x60{1,3})(?<code>[^\x60](?:[^\n]{0,500}?[^\x60])??)\k<ticks>(?!\x60)`,
    String.raw`!?\[(?<label>[^\]\n]{0,300})\]\((?<href>[^\s()]{1,1000})(?:\s"[^"\n]{0,200}")?\)`,
    String.raw`\*\*(?=\S)(?<strong>[^\n]{0,500}?\S)\*\*`,
    String.raw`~~(?=\S)(?<del>[^\n]{0,500}?\S)~~`,
    String.raw`(?<![\w*])\*(?=[^\s*])(?<star>[^*\n]{0,500}?)(?<!\s)\*(?![\w*])`,
    String.raw`(?<!\w)_(?=[^\s_])(?<em>[^_\n]{1,500}?)(?<!\s)_(?!\w)`,
    String.raw`(?<url>https?:\/\/[^\s<>"\x60]{0,1000}[^\s<>"\x60.,;:!?)\]'*])`,
    String.raw`(?<![\w/-])(?<id>mem_[0-9a-z]{12}|(?:decision|checkpoint)_[a-z0-9_]{3,200})(?![\w-])`,
  ].join("|"),
  "gu",
);
const ID = /^(?:mem_[0-9a-z]{12}|(?:decision|checkpoint)_[a-z0-9_]{3,200})$/;

export function inline(source: string, depth = 0): Inline[] {
  if (depth > 3) return [{ kind: "text", text: source }];
  const parts: Inline[] = [];
  const text = (piece: string) => {
    const last = parts.at(-1);
    if (!piece) return;
    if (last?.kind === "text") last.text += piece;
    else parts.push({ kind: "text", text: piece });
  };
  let end = 0;
  for (const found of source.matchAll(INLINE)) {
    const { escaped, code, label, href, strong, del, star, em, url, id } = found.groups!;
    text(source.slice(end, found.index));
    end = found.index + found[0].length;
    const slanted = star ?? em;
    if (escaped) text(escaped);
    else if (code !== undefined) parts.push({ kind: ID.test(code) ? "id" : "code", text: code });
    else if (href !== undefined) link(found[0], href, inline(label || href, depth + 1));
    else if (strong) parts.push({ kind: "strong", parts: inline(strong, depth + 1) });
    else if (del) parts.push({ kind: "del", parts: inline(del, depth + 1) });
    else if (slanted) parts.push({ kind: "em", parts: inline(slanted, depth + 1) });
    else if (url) parts.push({ kind: "link", href: url, parts: [{ kind: "text", text: url }] });
    else if (id) parts.push({ kind: "id", text: id });
    else text(found[0]);
  }
  text(source.slice(end));
  return parts;

  /** Only to the web; anything else stays what was typed. No link within a link. */
  function link(typed: string, href: string, label: Inline[]): void {
    if (/^https?:\/\//i.test(href)) parts.push({ kind: "link", href, parts: [{ kind: "text", text: words(label) }] });
    else text(typed);
  }
}

const FENCE = /^\s{0,3}(```|~~~)/;
const HEADING = /^(#{1,6})\s+(.+?)\s*#*$/;
const RULE = /^\s{0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^\s{0,3}>\s?/;
const BENEATH = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/; // the line below a table's head
const TASK = /^\[([ xX])\]\s+/;
const ITEM = /^(\s*)(?:([-*+•])|(\d{1,3})[.)])\s+(?=\S)/;

export const read = (text: string): Block[] => blocks(text.replace(/\r\n?/g, "\n").split("\n"), 0);

function blocks(lines: string[], depth: number): Block[] {
  const found: Block[] = [];
  let at = 0;
  /** The next lines, as long as they go on; `after` is what comes behind a line, blank lines left out. */
  const take = (goes: (line: string, after: string) => boolean): string[] => {
    const begun = at;
    const after = () => lines.slice(at + 1, at + 4).find((line) => line.trim()) ?? "";
    while (at < lines.length && goes(lines[at]!, lines[at]!.trim() ? "" : after())) at++;
    return lines.slice(begun, at);
  };
  while (at < lines.length) {
    const line = lines[at]!;
    const heading = HEADING.exec(line);
    const fence = FENCE.exec(line)?.[1];
    if (!line.trim()) at++;
    else if (fence) {
      at++;
      found.push({ kind: "code", text: take((one) => !one.trimStart().startsWith(fence)).join("\n") });
      at++;
    } else if (heading) {
      found.push({ kind: "heading", level: heading[1]!.length, parts: inline(heading[2]!) });
      at++;
    } else if (RULE.test(line)) {
      found.push({ kind: "rule" });
      at++;
    } else if (QUOTE.test(line) && depth < DEEPEST) {
      found.push({ kind: "quote", blocks: blocks(take((one) => QUOTE.test(one)).map((one) => one.replace(QUOTE, "")), depth + 1) });
    } else if (ITEM.test(line) && depth < DEEPEST) {
      found.push(list(take, line, depth));
    } else if (tabled(lines, at)) {
      const [head = [], , ...rows] = take((one) => one.includes("|")).map((one) => cells(one).map((cell) => inline(cell)));
      found.push({ kind: "table", head, rows: rows.map((row) => head.map((_, column) => row[column] ?? [])) });
    } else {
      const first = at;
      const source = take((one) => at === first || !(begins(one, depth) || tabled(lines, at))).join("\n");
      found.push({ kind: "text", source, parts: inline(source) });
    }
  }
  return found;
}

/** Whether a paragraph ends before this line. */
const begins = (line: string, depth: number) =>
  !line.trim() || FENCE.test(line) || HEADING.test(line) || (depth < DEEPEST && (QUOTE.test(line) || ITEM.test(line)));

const tabled = (lines: string[], at: number) => lines[at]!.includes("|") && BENEATH.test(lines[at + 1] ?? "") && lines[at + 1]!.includes("-");
const cells = (line: string) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));

/** Items with the same mark at the same depth; what is further in belongs to the item before. */
function list(take: (goes: (line: string, after: string) => boolean) => string[], first: string, depth: number): Block {
  const [, indent = "", , number] = ITEM.exec(first)!;
  const deeper = (line: string) => line.length - line.trimStart().length > indent.length;
  const items: Item[] = [];
  const next = (line: string) => {
    const item = ITEM.exec(line);
    return item !== null && item[1]!.length === indent.length && (item[3] !== undefined) === (number !== undefined);
  };
  for (;;) {
    let head = "";
    take((line, after) => head === "" && (next(line) ? (head = line) !== "" : next(after)));
    if (!head) break;
    const rest = take((line, after) => deeper(line.trim() ? line : after));
    const inset = Math.min(...rest.filter((line) => line.trim()).map((line) => line.length - line.trimStart().length));
    const text = head.replace(ITEM, "");
    const done = TASK.exec(text)?.[1];
    items.push({
      done: done === undefined ? undefined : done !== " ",
      blocks: blocks([text.replace(TASK, ""), ...rest.map((line) => line.slice(inset))], depth + 1),
    });
  }
  return { kind: "list", ordered: number !== undefined, start: Number(number ?? 1), items };
}

// --- as plain words --------------------------------------------------------------------------------------------------

export const words = (parts: Inline[]): string =>
  parts.map((part) => ("text" in part ? part.text : words(part.parts))).join("");

/** The same on a few lines, for where there is little room. */
export function flat(blocks: Block[], depth = 0): Inline[] {
  const lines: Inline[][] = [];
  const inset = "\u2003".repeat(depth);
  for (const block of blocks) {
    if (block.kind === "heading" || block.kind === "text") lines.push(block.parts);
    else if (block.kind === "code") lines.push([{ kind: "text", text: block.text }]);
    else if (block.kind === "quote") lines.push(flat(block.blocks, depth));
    else if (block.kind === "table") {
      for (const row of [block.head, ...block.rows])
        lines.push(row.flatMap((cell, at): Inline[] => (at ? [{ kind: "text", text: " | " }, ...cell] : cell)));
    } else if (block.kind === "list") {
      block.items.forEach((item, at) => {
        const mark = item.done === undefined ? (block.ordered ? `${block.start + at}. ` : "• ") : item.done ? "☑ " : "☐ ";
        lines.push([{ kind: "text", text: inset + mark }, ...flat(item.blocks, depth + 1)]);
      });
    }
  }
  return lines.flatMap((line, at): Inline[] => (at ? [{ kind: "text", text: "\n" }, ...line] : line));
}

const ENDS = /[.!?](?=\s)|[。！？]/g;
const LONGEST = 160;
const LEAST = 12;

export interface Opening {
  title: string; // without marks
  head: Inline[]; // the same with them
  rest: Block[];
  joint: string; // what stands between it and the rest
  cut: boolean; // the title is only how the first sentence begins; the rest is everything
}

/** How a text begins: its first heading or sentence, and what follows. */
export function opening(text: string): Opening {
  const all = read(text);
  const [first, ...others] = all;
  const joint = "\n";
  if (first?.kind === "heading") return { title: words(first.parts), head: first.parts, rest: others, joint, cut: false };
  if (first?.kind === "list") {
    const [item, ...items] = first.items;
    const head = flat(item?.blocks ?? []);
    const title = words(head);
    const rest = items.length ? [{ ...first, start: first.start + 1, items }, ...others] : others;
    if (!title.includes("\n") && title.length <= LONGEST) return { title, head, rest, joint, cut: false };
  }
  if (first?.kind === "text") {
    const source = first.source;
    for (const { index } of source.slice(0, 2 * LONGEST).matchAll(ENDS)) {
      const sentence = source.slice(0, index + 1);
      const head = inline(sentence);
      const title = words(head);
      if (title.length > LONGEST) break;
      if (title.length < LEAST || open(sentence) || /\b(?:e\.g|i\.e|etc|vs|Dr|Mr|Mrs|Ms|No|St)\.$/.test(sentence)) continue;
      const left = source.slice(index + 1).trim();
      const more: Block[] = left ? [{ kind: "text", source: left, parts: inline(left) }] : [];
      return { title: oneLine(title), head, rest: [...more, ...others], joint: left ? " " : joint, cut: false };
    }
    const title = words(first.parts);
    if (title.length <= LONGEST) return { title: oneLine(title), head: first.parts, rest: others, joint, cut: false };
  }
  const line = oneLine(words(flat(all)));
  const title = line.length > 90 ? `${line.slice(0, 90).replace(/\s+\S*$/, "")} …` : line;
  return { title, head: [{ kind: "text", text: title }], rest: all, joint, cut: true };
}

const oneLine = (text: string) => text.split(/\s+/).join(" ").trim();
/** Whether a sentence ends within something marked. */
const open = (source: string) => source.split("**").length % 2 === 0 || source.split("`").length % 2 === 0 || /\[[^\]]*$|\([^)]*$/.test(source);

/** A line without marks, also one that was cut off somewhere. */
export const unmarked = (line: string) =>
  words(inline(line.replace(/^#{1,6}\s+/, ""))).replace(/\*\*|`/g, "").replace(/\s#{1,6}\s/g, " ");
