import { isObject } from '../../machines/protocol/codec/json.ts'

/**
 * The form of 0.3 in the drafts after it: without `kind`, and with files as `{ name, mediaType, fileWithBytes }`. Under this
 * name the webhooks of its clients are stored.
 */
export const BARE = '0.3 without kind'

/** The members of 0.3's objects that hold other objects of 0.3. The author's own data is under none of them. */
const MEMBERS = new Set(['status', 'message', 'history', 'artifact', 'artifacts', 'parts'])

/** Whether the parameters of a method have a message in which nothing says its `kind`; `undefined` if they have no message. */
export function isBareMessage(params: unknown): boolean | undefined {
  const message = isObject(params) ? params.message : undefined
  if (!isObject(message)) return undefined
  const parts: unknown[] = Array.isArray(message.parts) ? message.parts : []
  return ![message, ...parts].some(value => isObject(value) && Object.hasOwn(value, 'kind'))
}

/** An object of 0.3, or a list of such, without `kind` and with its files in that form. */
export function toBare(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toBare)
  if (!isObject(value)) return value
  const bare: Record<string, unknown> = {}
  for (const [name, member] of Object.entries(value)) {
    if (name === 'file' && isObject(member)) bare.file = toBareFile(member)
    else if (name !== 'kind') bare[name] = MEMBERS.has(name) ? toBare(member) : member
  }
  return bare
}

function toBareFile({ bytes, uri, mimeType, ...others }: Record<string, unknown>): object {
  return { ...others, ...(mimeType !== undefined && { mediaType: mimeType }), ...(bytes === undefined ? { fileWithUri: uri } : { fileWithBytes: bytes }) }
}
