import { readFile } from 'node:fs/promises'
import { basename, extname, resolve } from 'node:path'
import type { JsonValue } from '../../../machines/protocol/codec/json.ts'
import type { Part } from '../../../machines/protocol/objects.ts'
import { readPositionals, type ArgumentToken } from '../arguments.ts'
import { usageError, type Io } from '../command.ts'
import { mediaTypeOf } from './artifacts.ts'

const TEXTS = { type: 'string', multiple: true } as const

/** The options for the parts of a message, in both spellings of a2a-cli. */
export const PART_OPTIONS = {
  text: TEXTS,
  'text-part': TEXTS,
  file: TEXTS,
  'file-part': TEXTS,
  data: TEXTS,
  'data-part': TEXTS,
  'media-type': TEXTS
} as const

export const PARTS_HELP = `The parts of the message are "text" and these, in their order:

  --text TEXT     a text
  --file PATH|URL a file, which is sent with its name; a URL is sent as it is
  --data JSON|PATH|-
                  data: an object or a list as JSON, a file with JSON, or stdin. It answers a question with a schema
  --media-type T  the media type of the part before it. Default for a file: by its name`

/** A part, and whether it has got its media type by an option. */
type Read = (value: string, io: Pick<Io, 'cwd' | 'input' | 'signal'>) => Promise<Part>

const READERS: Readonly<Record<string, Read>> = {
  text: async text => ({ text }),
  file: readFilePart,
  data: async (value, io) => ({ data: await readData(value, io) })
}

/**
 * The parts that a command line gives, in its order. `rest` are the positionals after the agent: at most the text.
 * Throws a usage error for none, for what cannot be read, and for a media type without a part.
 */
export async function readParts(
  tokens: readonly ArgumentToken[],
  rest: readonly string[],
  io: Pick<Io, 'cwd' | 'input' | 'signal'>
): Promise<Part[]> {
  const hasOptions = tokens.some(({ name = '' }) => name !== 'media-type' && Object.hasOwn(PART_OPTIONS, name))
  if (!hasOptions || rest.length > 0) readPositionals(rest, ['"text"'])
  const positional = rest.length > 0 ? tokens.findLast(({ name }) => name === undefined) : undefined
  const parts: Part[] = []
  let isTyped = true
  for (const token of tokens) {
    const name = token === positional ? 'text' : (token.name ?? '').replace(/-part$/, '')
    const { value = '' } = token
    const reader = Object.hasOwn(READERS, name) ? READERS[name] : undefined
    if (reader) {
      parts.push(await reader(value, io))
      isTyped = false
    } else if (name === 'media-type') {
      const last = parts.pop()
      if (!last || isTyped) throw usageError(`--media-type ${value} has to follow its part.`)
      parts.push({ ...last, mediaType: value })
      isTyped = true
    }
  }
  return parts
}

async function readFilePart(place: string, { cwd }: Pick<Io, 'cwd'>): Promise<Part> {
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(place)) return { url: place }
  const bytes = await readFile(resolve(cwd, place)).catch((error: Error) => {
    throw usageError(`--file ${place} cannot be read: ${error.message}.`)
  })
  const mediaType = mediaTypeOf(extname(place))
  return { raw: bytes.toString('base64'), filename: basename(place), ...(mediaType !== undefined && { mediaType }) }
}

async function readData(given: string, io: Pick<Io, 'cwd' | 'input' | 'signal'>): Promise<JsonValue> {
  const isJson = /^\s*[[{]/.test(given)
  const text = isJson ? given : given === '-' ? await wholeInput(io) : await textOfFile(given, io)
  try {
    return JSON.parse(text) as JsonValue
  } catch (error) {
    throw usageError(`--data ${isJson ? '' : `${given} `}is not JSON: ${(error as Error).message}.`)
  }
}

function textOfFile(path: string, { cwd }: Pick<Io, 'cwd'>): Promise<string> {
  return readFile(resolve(cwd, path), 'utf8').catch((error: Error) => {
    throw usageError(`--data ${path} cannot be read: ${error.message}. Data itself begins with { or [.`)
  })
}

/** The lines of stdin up to its end. */
async function wholeInput({ input, signal }: Pick<Io, 'input' | 'signal'>): Promise<string> {
  const lines: string[] = []
  for (;;) {
    const line = await input.ask('', signal)
    signal.throwIfAborted()
    if (line === undefined) return lines.join('\n')
    lines.push(line)
  }
}
