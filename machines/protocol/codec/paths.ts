const LONGEST = 200
const PLAIN_NAME = /^[A-Za-z_$][\w$-]{0,99}$/

/**
 * Formats the path of a value, as in `params.message.parts[0].text`. Names that are not identifiers are quoted, as in
 * `metadata["urn:example"]`. Text over 200 characters is truncated with `…`. An empty root is omitted.
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
