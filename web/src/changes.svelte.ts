// What agents change while one looks. A view asks `changes.count` (and which) and reads again; bursts are taken together.

class Changes {
  count = $state(0);
  latest = $state<string | null>(null);
  #timer = 0;

  note(id: string | null): void {
    this.latest = id;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.count++, 250) as unknown as number;
  }
}

export const changes = new Changes();
