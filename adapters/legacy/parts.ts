import * as z from 'zod'
import {
  anyString,
  bytes,
  complain,
  decode,
  nonEmptyText,
  oneOf,
  optionalText,
  presenceField,
  requiredField,
  requirementText,
  type Schema,
  struct
} from '../../machines/protocol/codec/decode.ts'
import { checkJson, isObject, type JsonLimits, type JsonValue } from '../../machines/protocol/codec/json.ts'
import { invalidParams } from '../../machines/protocol/errors.ts'
import type { Part } from '../../machines/protocol/objects.ts'

/** A schema for one of these words. */
export function word<const Word extends string>(...words: [Word, ...Word[]]): Schema<Word> {
  return z.enum(words, { error: requirementText(`one of ${words.join(', ')}`) })
}

const contents = { bytes: requiredField(bytes), uri: requiredField(nonEmptyText) }

const File01 = oneOf(contents, { name: optionalText, mimeType: optionalText })

/** A file of 0.3, also with the names of later drafts: `fileWithBytes`, `fileWithUri` and `mediaType`. */
const File03 = z.pipe(
  oneOf(
    { ...contents, fileWithBytes: requiredField(bytes), fileWithUri: requiredField(nonEmptyText) },
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
const content03 = { text: requiredField(anyString), file: requiredField(File03), data: requiredField(struct) }
const content01 = { ...content03, file: requiredField(File01) }
const kinds = presenceField(word('text', 'file', 'data'))

/** A part of 0.3. Its `kind` is optional, as in later drafts, and follows from its content. */
export const Part03Schema = z.pipe(
  oneOf(content03, { kind: kinds, metadata: presenceField(struct) }),
  z.transform((part, context) => ({ ...part, kind: kindOf(part, part.kind, context) }))
)

/** A part of 0.1, where `kind` is called `type`. */
export const Part01Schema = z.pipe(
  oneOf(content01, { type: kinds, metadata: presenceField(struct) }),
  z.transform((part, context) => ({ ...part, type: kindOf(part, part.type, context) }))
)

/** The kind of a part by its content, which a given kind must match. */
function kindOf(
  part: object,
  given: 'text' | 'file' | 'data' | undefined,
  context: z.core.ParsePayload
): 'text' | 'file' | 'data' {
  const kind = given ?? ('text' in part ? 'text' : 'file' in part ? 'file' : 'data')
  if (!Object.hasOwn(part, kind)) complain(context, [kind], `is required in a part of kind ${kind}`)
  return kind
}

/** Validates the params of an older method. Throws InvalidParams with the field names of that version. */
export function checkedParams<Params>(schema: Schema<Params>, given: unknown, limits: JsonLimits): Params {
  const violation = checkJson(given, limits)
  if (violation) throw invalidParams(violation)
  return decode(schema, given)
}

/** A part of 0.1. */
type Part01 = z.output<typeof Part01Schema>

/** The metadata key for data that is not an object in 1.0, and is wrapped as `{ value }`, as by the official SDK. */
const WRAPPED = 'data_part_compat'

/** Converts a part of 0.1 to 1.0. */
export function fromPart01(part: Part01): Part {
  const { [WRAPPED]: isWrapped, ...metadata } = part.metadata ?? {}
  const beside = Object.keys(metadata).length > 0 ? { metadata } : {}
  if ('text' in part) return { text: part.text, ...beside }
  if ('data' in part) return { data: (isWrapped === true ? part.data.value : part.data) as JsonValue, ...beside }
  const { name, mimeType } = part.file
  const others = {
    ...(name !== undefined && { filename: name }),
    ...(mimeType !== undefined && { mediaType: mimeType }),
    ...beside
  }
  return 'bytes' in part.file ? { raw: part.file.bytes, ...others } : { url: part.file.uri, ...others }
}

/** Converts a part to 0.1. */
export function toPart01(part: Part): Part01 {
  const { metadata, filename, mediaType } = part
  const beside = metadata ? { metadata } : {}
  if ('text' in part) return { type: 'text', text: part.text, ...beside }
  if ('data' in part) {
    if (isObject(part.data)) return { type: 'data', data: part.data, ...beside }
    return { type: 'data', data: { value: part.data }, metadata: { ...metadata, [WRAPPED]: true } }
  }
  const others = {
    ...(filename !== undefined && { name: filename }),
    ...(mediaType !== undefined && { mimeType: mediaType })
  }
  return {
    type: 'file',
    file: 'raw' in part ? { bytes: part.raw, ...others } : { uri: part.url, ...others },
    ...beside
  }
}

/** A task's state in 0.1. */
export type State01 = 'submitted' | 'working' | 'input-required' | 'completed' | 'canceled' | 'failed'

/** A message of 0.1. */
export interface Message01 {
  readonly role: 'user' | 'agent'
  readonly parts: readonly Part01[]
  readonly metadata?: Record<string, unknown>
}

/** A status of 0.1. */
export interface Status01 {
  readonly state: State01
  readonly message?: Message01
  readonly timestamp?: string
}

/** An artifact of 0.1, or a chunk of one: it has a number in its task, from 0, instead of an id. */
export interface Artifact01 {
  readonly name?: string
  readonly description?: string
  readonly parts: readonly Part01[]
  readonly index: number
  readonly append?: boolean
  readonly lastChunk?: boolean
  readonly metadata: Record<string, unknown>
}

/** A task of 0.1, with the id that its client chose. */
export interface Task01 {
  readonly id: string
  readonly sessionId?: string
  readonly status: Status01
  readonly artifacts?: readonly Artifact01[]
  readonly history?: readonly Message01[]
  readonly metadata?: Record<string, unknown>
}

/** An item of a stream of 0.1. `final`: the stream closes after it. */
export type Event01 =
  | {
      readonly id: string
      readonly status: Status01
      readonly final: boolean
      readonly metadata?: Record<string, unknown>
    }
  | { readonly id: string; readonly artifact: Artifact01; readonly metadata?: Record<string, unknown> }
