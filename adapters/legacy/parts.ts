import * as z from 'zod'
import { optionalText, present, required } from '../../machines/protocol/fields.ts'
import { complain, wanted } from '../../machines/protocol/issues.ts'
import { oneOf } from '../../machines/protocol/message.ts'
import { bytes, nonEmptyText, struct, text, type Schema } from '../../machines/protocol/values.ts'

/** One of these words. */
export function word<const Word extends string>(...words: [Word, ...Word[]]): Schema<Word> {
  return z.enum(words, { error: wanted(`one of ${words.join(', ')}`) })
}

const File = oneOf({ bytes: required(bytes), uri: required(nonEmptyText) }, { name: optionalText, mimeType: optionalText })

/** What a part has: its one content, and what may stand beside it. */
const content = { text: required(text), file: required(File), data: required(struct) }
const kinds = present(word('text', 'file', 'data'))

/** A part of 0.3. Its `kind` may be left out, as the guide of the drafts of 1.0 did: its one content says what it is. */
export const Part03Schema = z.pipe(oneOf(content, { kind: kinds, metadata: present(struct) }), z.transform((part, context) => ({ ...part, kind: kindOf(part, part.kind, context) })))

/** A part of 0.1, where `kind` is called `type`. */
export const Part01Schema = z.pipe(oneOf(content, { type: kinds, metadata: present(struct) }), z.transform((part, context) => ({ ...part, type: kindOf(part, part.type, context) })))

/** What a part is by its content, which what it says of itself has to agree with. */
function kindOf(part: object, said: 'text' | 'file' | 'data' | undefined, context: z.core.ParsePayload): 'text' | 'file' | 'data' {
  const kind = said ?? ('text' in part ? 'text' : 'file' in part ? 'file' : 'data')
  if (!Object.hasOwn(part, kind)) complain(context, [kind], `is required in a part of kind ${kind}`)
  return kind
}
