/** Focuses an element once it is rendered, which is before the next key press: keys pressed at once all get there. */
export function focusOn(selector: string): void {
  queueMicrotask(() => document.querySelector<HTMLElement>(selector)?.focus())
}
