/**
 * What a task is asked to do: one artifact, so many chunks of one artifact, each of so many characters if that is
 * given, or a question to the client.
 */
export type Errand =
  | { readonly kind: 'artifact' }
  | { readonly kind: 'chunks'; readonly count: number; readonly characters?: number }
  | { readonly kind: 'ask' }

/** The artifact of every task that makes one at once. */
export const ARTIFACT_TEXT = 'A boat with one mast and two sails lies at anchor in a small bay. '.repeat(3).trim()

/** The two steps of a workflow: the second one continues the result of the first. */
export const WORK_STEPS = {
  begin: async () => ARTIFACT_TEXT.slice(0, 100),
  end: async (begun: string) => `${begun}${ARTIFACT_TEXT.slice(100)}`
}

/** Each chunk of a streamed artifact: about what a model says in one step. */
export const CHUNK_TEXT = 'a few words more '

/** The words with which an errand travels, as a message's text. */
export function wordsOf(errand: Errand): string {
  if (errand.kind !== 'chunks') return errand.kind
  return errand.characters === undefined ? `chunks ${errand.count}` : `chunks ${errand.count} of ${errand.characters}`
}

/** Reads {@link wordsOf} back. Anything else is an answer, which asks for the artifact. */
export function errandIn(words: string): Errand {
  const [, count, characters] = /^chunks (\d+)(?: of (\d+))?$/.exec(words) ?? []
  if (count !== undefined)
    return { kind: 'chunks', count: Number(count), ...(characters !== undefined && { characters: Number(characters) }) }
  return words === 'ask' ? { kind: 'ask' } : { kind: 'artifact' }
}

/**
 * Lets everything else that is ready have its turn: chunks come one in each turn of the event loop, as from a model.
 */
export function nextTurn(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}
