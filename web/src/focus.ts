/** Where one goes on typing: `{@attach focus}`. */
export const focus = (element: HTMLElement) => element.focus({ preventScroll: true });
