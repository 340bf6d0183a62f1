const LONGEST = 200
const PLAIN_NAME = /^[A-Za-z_$][\w$-]{0,99}$/

/**
 * Writes where a value is, as in `params.message.parts[0].text`; names that are no plain words are quoted, as in
 * `metadata["urn:example"]`. Longer than 200 characters it is cut and ends with `…`. An empty root is left out.
 */
export function pathText(root: string, path: readonly PropertyKey[]): string {
  let text = root
  for (const step of path) {
    if (text.length > LONGEST) break
    text += segment(step, text === '')
  }
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text
}

function segment(step: PropertyKey, first: boolean): string {
  if (typeof step === 'number') return `[${step}]`
  const name = String(step)
  if (!PLAIN_NAME.test(name)) return `[${JSON.stringify(name.slice(0, LONGEST))}]`
  return first ? name : `.${name}`
}
