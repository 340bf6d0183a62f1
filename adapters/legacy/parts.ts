import * as z from 'zod'
import { decode } from '../../machines/protocol/codec/decode.ts'
import { optionalText, present, required } from '../../machines/protocol/codec/fields.ts'
import { complain, wanted } from '../../machines/protocol/codec/issues.ts'
import { checkJson, type JsonLimits } from '../../machines/protocol/codec/json.ts'
import { oneOf } from '../../machines/protocol/codec/message.ts'
import { bytes, nonEmptyText, type Schema, struct, text } from '../../machines/protocol/codec/values.ts'
import { invalidParams } from '../../machines/protocol/errors.ts'

/** A schema for one of these words. */
export function word<const Word extends string>(...words: [Word, ...Word[]]): Schema<Word> {
  return z.enum(words, { error: wanted(`one of ${words.join(', ')}`) })
}

const contents = { bytes: required(bytes), uri: required(nonEmptyText) }

const File01 = oneOf(contents, { name: optionalText, mimeType: optionalText })

/** A file of 0.3, also with the names of later drafts: `fileWithBytes`, `fileWithUri` and `mediaType`. */
const File03 = z.pipe(
  oneOf(
    { ...contents, fileWithBytes: required(bytes), fileWithUri: required(nonEmptyText) },
    { name: optionalText, mimeType: optionalText, mediaType: optionalText }
  ),
  z.transform(({ name, mimeType, mediaType, ...file }, context) => {
    if (mimeType !== undefined && mediaType !== undefined)
      complain(context, ['mediaType'], 'must not also be given as mimeType')
    const type = mimeType ?? mediaType
    const content =
      'fileWithBytes' in file ? { bytes: file.fileWithBytes } : 'fileWithUri' in file ? { uri: file.fileWithUri } : file
    return { ...content, ...(name !== undefined && { name }), ...(type !== undefined && { mimeType: type }) }
  })
)

/** The content of a part. */
const content03 = { text: required(text), file: required(File03), data: required(struct) }
const content01 = { ...content03, file: required(File01) }
const kinds = present(word('text', 'file', 'data'))

/** A part of 0.3. Its `kind` is optional, as in later drafts, and follows from its content. */
export const Part03Schema = z.pipe(
  oneOf(content03, { kind: kinds, metadata: present(struct) }),
  z.transform((part, context) => ({ ...part, kind: kindOf(part, part.kind, context) }))
)

/** A part of 0.1, where `kind` is called `type`. */
export const Part01Schema = z.pipe(
  oneOf(content01, { type: kinds, metadata: present(struct) }),
  z.transform((part, context) => ({ ...part, type: kindOf(part, part.type, context) }))
)

/** The kind of a part by its content, which a given kind must match. */
function kindOf(
  part: object,
  said: 'text' | 'file' | 'data' | undefined,
  context: z.core.ParsePayload
): 'text' | 'file' | 'data' {
  const kind = said ?? ('text' in part ? 'text' : 'file' in part ? 'file' : 'data')
  if (!Object.hasOwn(part, kind)) complain(context, [kind], `is required in a part of kind ${kind}`)
  return kind
}

/** Validates the params of an older method. Throws InvalidParams with the field names of that version. */
export function checkedParams<Params>(schema: Schema<Params>, given: unknown, limits: JsonLimits): Params {
  const violation = checkJson(given, limits)
  if (violation) throw invalidParams(violation)
  return decode(schema, given)
}
