import * as z from 'zod'
import { optionalText, present, required } from '../../machines/protocol/codec/fields.ts'
import { complain, wanted } from '../../machines/protocol/codec/issues.ts'
import { oneOf } from '../../machines/protocol/codec/message.ts'
import { bytes, nonEmptyText, struct, text, type Schema } from '../../machines/protocol/codec/values.ts'

/** One of these words. */
export function word<const Word extends string>(...words: [Word, ...Word[]]): Schema<Word> {
  return z.enum(words, { error: wanted(`one of ${words.join(', ')}`) })
}

const contents = { bytes: required(bytes), uri: required(nonEmptyText) }

const File01 = oneOf(contents, { name: optionalText, mimeType: optionalText })

/** A file of 0.3, whose members the drafts after it called `fileWithBytes`, `fileWithUri` and `mediaType`. */
const File03 = z.pipe(
  oneOf({ ...contents, fileWithBytes: required(bytes), fileWithUri: required(nonEmptyText) }, { name: optionalText, mimeType: optionalText, mediaType: optionalText }),
  z.transform(({ name, mimeType, mediaType, ...file }, context) => {
    if (mimeType !== undefined && mediaType !== undefined) complain(context, ['mediaType'], 'must not also be given as mimeType')
    const type = mimeType ?? mediaType
    const content = 'fileWithBytes' in file ? { bytes: file.fileWithBytes } : 'fileWithUri' in file ? { uri: file.fileWithUri } : file
    return { ...content, ...(name !== undefined && { name }), ...(type !== undefined && { mimeType: type }) }
  })
)

/** What a part has: its one content. */
const content03 = { text: required(text), file: required(File03), data: required(struct) }
const content01 = { ...content03, file: required(File01) }
const kinds = present(word('text', 'file', 'data'))

/** A part of 0.3. Its `kind` may be left out, as in the drafts after 0.3: its one content says what it is. */
export const Part03Schema = z.pipe(oneOf(content03, { kind: kinds, metadata: present(struct) }), z.transform((part, context) => ({ ...part, kind: kindOf(part, part.kind, context) })))

/** A part of 0.1, where `kind` is called `type`. */
export const Part01Schema = z.pipe(oneOf(content01, { type: kinds, metadata: present(struct) }), z.transform((part, context) => ({ ...part, type: kindOf(part, part.type, context) })))

/** What a part is by its content, which what it says of itself has to agree with. */
function kindOf(part: object, said: 'text' | 'file' | 'data' | undefined, context: z.core.ParsePayload): 'text' | 'file' | 'data' {
  const kind = said ?? ('text' in part ? 'text' : 'file' in part ? 'file' : 'data')
  if (!Object.hasOwn(part, kind)) complain(context, [kind], `is required in a part of kind ${kind}`)
  return kind
}
