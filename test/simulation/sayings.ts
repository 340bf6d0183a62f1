import type { Message } from '../../machines/protocol/objects.ts'
import { artifact, text, textOf, type ProducedArtifact } from '../../runtime/authoring/words.ts'

/** What work returns that has done all of its script. */
export const RESULT = { artifact: { artifactId: 'result', parts: [text('result')] }, message: 'done' }

/** What was said in answer to a request for an authorization. */
export function given(answer: { readonly data: unknown } | { readonly message: Message }): string {
  return 'message' in answer ? `message ${textOf(answer.message)}` : `data ${String(answer.data)}`
}

/** An artifact in chunks, from a place in the script. */
export function* chunks(at: number, count: number): Generator<ProducedArtifact> {
  for (let k = 0; k < count; k += 1)
    yield artifact({ artifactId: `a@${at}`, parts: [text(String(k))] }, { append: k > 0, lastChunk: k === count - 1 })
}
