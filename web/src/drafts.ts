// What one is typing, kept in the browser until the server has it: a lost connection, an ended session or a reload
// loses nothing.

const place = (name: string) => `draft:${name}`;

/** Whether something was left unfinished under this name. */
export const unfinished = (name: string) => sessionStorage.getItem(place(name)) !== null;

/** What differs from the start is kept. */
export function draft<T>(name: string, start: T) {
  const key = place(name);
  const untouched = JSON.stringify(start);
  return {
    read: (): T => JSON.parse(sessionStorage.getItem(key) ?? untouched) as T,
    write(typed: T): void {
      const text = JSON.stringify(typed);
      if (text === untouched) sessionStorage.removeItem(key);
      else sessionStorage.setItem(key, text);
    },
    drop: (): void => sessionStorage.removeItem(key),
  };
}
