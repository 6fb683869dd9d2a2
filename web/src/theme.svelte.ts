// Light or dark: as the system says, until the reader says otherwise.

const KEY = "theme";

class Theme {
  wish = $state(localStorage.getItem(KEY) ?? "");
  #system = $state(matchMedia("(prefers-color-scheme: dark)").matches);

  constructor() {
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => (this.#system = event.matches));
    this.#show();
  }

  get dark(): boolean {
    return this.wish ? this.wish === "dark" : this.#system;
  }

  turn(): void {
    this.wish = this.dark ? "light" : "dark";
    localStorage.setItem(KEY, this.wish);
    this.#show();
  }

  #show(): void {
    document.documentElement.style.colorScheme = this.wish || "light dark";
  }
}

export const theme = new Theme();

/** Colours of the style sheet as drawings need them. light-dark() is understood by the browser's styles only. */
export function colours(...names: string[]): string[] {
  const probe = document.createElement("span");
  document.body.append(probe);
  const found = names.map((name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  });
  probe.remove();
  return found;
}
