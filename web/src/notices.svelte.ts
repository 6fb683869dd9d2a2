// What the page says in passing: a sentence, and where it makes sense a way back.

import { Refused } from "./api";

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
  const text = error instanceof Refused ? error.words : String(error);
  if (!notices.some((one) => one.text === text)) say(text, { bad: true });
}

export function dismiss(key: number): void {
  const place = notices.findIndex((one) => one.key === key);
  if (place >= 0) notices.splice(place, 1);
}
