/**
 * What the texts of a stored context are full of. Ids come first, so that the phrases hold them as `\u0001` (the
 * context's) and `\u0002` (its first task's).
 */
const PHRASES = [
  ',"update":{"statusUpdate":{"taskId":"\u0002","contextId":"\u0001","status":{"state":"TASK_STATE_',
  '","taskId":"\u0002","role":"ROLE_AGENT","parts":[{"text":"',
  '"role":"ROLE_USER","parts":[{"text":"',
  '"taskId":"\u0002","contextId":"\u0001"',
  ',"negotiates":false,"taskLimit":256,"tasks":["\u0002"],"negotiations":[]',
  '{"status":"active","value":',
  '{"active":{"started":"inputRequired"}}',
  ',"historyValue":{},"context":{',
  ',"children":{"work":{"snapshot":',
  ',"src":"work","syncSnapshot":false}',
  ',"children":{}',
  '{"taskId":"\u0002","generation":',
  ',"message":{"messageId":"',
  '","contextId":"\u0001',
  '"}]},"timestamp":"',
  '","timestamp":"',
  '"}}}},'
]

const BETWEEN = '\u001f'
const FIRST_ID = 1
const FIRST_PHRASE = 3
// oxlint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u001f]/

/**
 * Texts as one that takes a fraction of the memory, given up to two ids that they hold: JSON text holds no control
 * characters, so each of these can stand for an id or a phrase. `undefined` for texts that do hold some, or half a
 * character.
 */
export function fold(texts: readonly string[], ids: readonly string[]): string | undefined {
  if (texts.some(text => CONTROL.test(text))) return undefined
  let folded = texts.join(BETWEEN)
  for (const [phrase, sign] of signsFor(ids)) folded = folded.replaceAll(phrase, sign)
  // A text of its own, not a chain of what was left between the signs; and not half a character, which bytes cannot hold.
  const own = Buffer.from(folded).toString()
  return own === folded ? own : undefined
}

/** The texts as they were, given the same ids. */
export function unfold(folded: string, ids: readonly string[]): string[] {
  let text = folded
  for (const [phrase, sign] of signsFor(ids).toReversed()) text = text.replaceAll(sign, () => phrase)
  return text.split(BETWEEN)
}

/** What is replaced by what, in this order: ids first, long phrases before those within them. */
function signsFor(ids: readonly string[]): [phrase: string, sign: string][] {
  const named = ids.map((id, index): [string, string] => [id, String.fromCharCode(FIRST_ID + index)])
  return [...named.filter(([id]) => id !== '' && !CONTROL.test(id)), ...SIGNS]
}

const SIGNS = PHRASES.map((phrase, index): [string, string] => [phrase, String.fromCharCode(FIRST_PHRASE + index)])
