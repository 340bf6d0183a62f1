/** Says that this runs in a browser, where there is no Node. */
export function inBrowser(): boolean {
  return typeof globalThis.process?.versions?.node !== 'string'
}
