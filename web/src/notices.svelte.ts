// What the page says in passing: a sentence, and where it makes sense a way back.

import { Refused } from "./api";
import { visited } from "./route.svelte";

export interface Notice {
  key: number;
  text: string;
  bad: boolean;
  undo?: () => void;
}

export const notices = $state<Notice[]>([]);
let last = 0;

export function say(text: string, options: { bad?: boolean; undo?: () => void } = {}): void {
  const notice = { key: ++last, text, bad: options.bad ?? false, undo: options.undo };
  notices.push(notice);
  setTimeout(() => dismiss(notice.key), options.undo ? 15_000 : 8_000);
}

export function sayError(error: unknown): void {
  if (error instanceof DOMException && error.name === "AbortError") return;
  if (error instanceof Refused && error.status === 401) return; // the page asks to sign in
  if (error instanceof Refused && error.visit !== undefined && error.visit !== visited()) return; // of a view that was left
  const text = error instanceof Refused ? error.words : String(error);
  if (!notices.some((one) => one.text === text)) say(text, { bad: true });
}

// What went wrong belongs to the view that it was said in; what was done can still be undone elsewhere.
addEventListener("hashchange", () => {
  for (const notice of notices.filter((one) => one.bad)) dismiss(notice.key);
});

/** Browsers lend the clipboard to pages from this machine and to those over https only. */
export async function copied(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say("Copied.");
  } catch {
    say("Copying is not possible here: select the text and copy it by hand.", { bad: true });
  }
}

export function dismiss(key: number): void {
  const place = notices.findIndex((one) => one.key === key);
  if (place >= 0) notices.splice(place, 1);
}
