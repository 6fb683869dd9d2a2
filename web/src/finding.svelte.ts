// What is looked for and what was found so far. It outlives the view, so that coming back shows the same list at the
// same place. Results are kept in leaves, as the server sent them: only those near the window are drawn.

import { SvelteMap } from "svelte/reactivity";
import { ANY, everyListed, listed, search, type Wanted } from "./native";
import type { Hit, Memory } from "./nouns";
import { sayError } from "./notices.svelte";

const LEAF = 25;

class Finding {
  text = $state("");
  wanted = $state<Wanted>({ ...ANY });
  leaves = $state.raw<Hit[][]>([]); // all that was read
  all = $state(false); // also what is hardly worth reading is shown
  doubts = $state.raw<Record<string, string>>({});
  #worth = $state.raw(new Set<string>());
  total = $state<number | null>(null); // null: nothing was asked yet, or there was no answer
  degraded = $state("");
  verdict = $state("");
  busy = $state(false);
  stale = $state(false); // something changed while one was reading further down
  chosen = new SvelteMap<string, Memory>();
  scroll = 0;
  #cursor = $state<string | undefined>();
  #running: AbortController | undefined;
  #shown = "";

  query = $derived(this.text.trim());
  filtered = $derived(Object.values(this.wanted).some(Boolean));
  count = $derived(this.leaves.reduce((sum, leaf) => sum + leaf.length, 0));
  shown = $derived(this.all || !this.query ? this.leaves : this.leaves.map((leaf) => leaf.filter((hit) => this.#worth.has(hit.memory.id))));
  hidden = $derived(this.all || !this.query ? 0 : (this.total ?? 0) - this.#worth.size);
  left = $derived(this.query ? this.all && this.count < (this.total ?? 0) : this.#cursor !== undefined);

  /** Whether the results are those of what is asked now. */
  get current(): boolean {
    return this.#shown === this.#asked() && this.total !== null;
  }

  #asked(): string {
    return JSON.stringify([this.query, this.wanted]);
  }

  /** The first leaf again. */
  async look(): Promise<void> {
    this.#running?.abort();
    this.#running = new AbortController();
    const { signal } = this.#running;
    const asked = this.#asked();
    this.busy = true;
    try {
      const answer = this.query
        ? await search(this.query, this.wanted, { limit: LEAF, offset: 0 }, signal)
        : await listed(this.wanted, { limit: LEAF }, signal);
      this.leaves = answer.hits.length ? [answer.hits] : [];
      this.doubts = answer.doubts;
      this.#worth = new Set(answer.worth);
      if (this.#shown !== asked) this.all = false;
      if (this.#worth.size === answer.hits.length) this.all = true; // and perhaps more behind them
      this.total = answer.total ?? null;
      this.#cursor = answer.cursor;
      this.degraded = answer.degraded ?? "";
      this.verdict = answer.verdict ?? "";
      this.stale = false;
      if (this.#shown !== asked) this.chosen.clear();
      this.#shown = asked;
    } catch (error) {
      if (!signal.aborted) sayError(error);
    } finally {
      if (!signal.aborted) this.busy = false;
    }
  }

  /** The next leaf, unless something else is asked meanwhile. */
  async more(): Promise<void> {
    if (this.busy || !this.left) return;
    const { signal } = (this.#running = new AbortController());
    this.busy = true;
    try {
      const answer = this.query
        ? await search(this.query, this.wanted, { limit: LEAF, offset: this.count }, signal)
        : await listed(this.wanted, { limit: LEAF, cursor: this.#cursor }, signal);
      if (answer.hits.length) this.leaves = [...this.leaves, answer.hits];
      else this.total = this.count;
      this.doubts = { ...this.doubts, ...answer.doubts };
      this.#cursor = answer.cursor;
    } catch (error) {
      if (!signal.aborted) sayError(error);
    } finally {
      if (!signal.aborted) this.busy = false;
    }
  }

  choose(memory: Memory): void {
    if (!this.chosen.delete(memory.id)) this.chosen.set(memory.id, memory);
  }

  /** All that the filters name, also those that are not shown yet. */
  async chooseAll(): Promise<void> {
    for (const memory of await everyListed(this.wanted)) this.chosen.set(memory.id, memory);
  }

  /** In another space nothing of this holds. */
  reset(): void {
    this.#running?.abort();
    this.leaves = [];
    this.total = null;
    this.#cursor = undefined;
    this.#shown = "";
    this.busy = false;
    this.scroll = 0;
    this.chosen.clear();
  }
}

export const finding = new Finding();
