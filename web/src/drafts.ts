// What one is typing, kept in the browser until the server has it: a lost connection or an ended session loses nothing.

export function draft(name: string) {
  const key = `draft:${name}`;
  return {
    read: (otherwise = ""): string => sessionStorage.getItem(key) ?? otherwise,
    write: (text: string): void => (text ? sessionStorage.setItem(key, text) : sessionStorage.removeItem(key)),
    drop: (): void => sessionStorage.removeItem(key),
  };
}
