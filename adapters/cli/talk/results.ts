import { type Offer, offerIn } from '../../../machines/protocol/negotiation.ts'
import type { Message } from '../../../machines/protocol/parts.ts'
import type { Io } from '../command.ts'
import { oneLine, plain, sizeText } from '../text/terminal-text.ts'
import { lengthText } from '../text/time-text.ts'
import { type Given, messageParts } from './artifact-parts.ts'
import { saveGiven } from './save-artifacts.ts'

export interface ResultOptions {
  /** The folder for files. Without it, only their names are printed. */
  readonly out: string | undefined
  /** Whether text is saved as well as printed: true for artifacts, false for messages. */
  readonly savesText: boolean
  /** Whether stdout is for JSON only. Then files are saved and nothing is printed. */
  readonly json: boolean
}

/** Prints results, and saves the files among them. URLs are printed, never fetched. */
export async function showResults(
  results: readonly Given[],
  { out, savesText, json }: ResultOptions,
  io: Io
): Promise<void> {
  for (const given of results) {
    const isSaved = out !== undefined && !('url' in given) && (savesText || !('text' in given))
    const path = isSaved ? await saveGiven(given, out, io.cwd) : undefined
    if (!json && !('bytes' in given)) io.stdout.write(`${printed(given, io.clock.now())}\n`)
    if (path !== undefined) (json ? io.stderr : io.stdout).write(`saved ${oneLine(path)}${about(given)}\n`)
    else if (!json && 'bytes' in given)
      io.stdout.write(`${oneLine(given.name)}${about(given)}, not saved: add --out DIR to save files\n`)
  }
}

/** A short description of a result that is not text: `picture.png (image/png, 45.1 kB)`. */
export function shortly(given: Given): string {
  return `${oneLine(given.name)}${about(given)}`
}

function printed(given: Exclude<Given, { bytes: Uint8Array }>, nowMs: number): string {
  if ('text' in given) return plain(given.text)
  if ('url' in given) return `${shortly(given)}: ${oneLine(given.url)}`
  const offer = offerIn({ parts: [{ data: given.data }] })
  return offer ? offerText(offer, nowMs) : plain(JSON.stringify(given.data, null, 2))
}

function about(given: Given): string {
  const facts = [
    ...(given.mediaType === undefined ? [] : [oneLine(given.mediaType)]),
    ...('bytes' in given ? [sizeText(given.bytes.length)] : [])
  ]
  return facts.length === 0 ? '' : ` (${facts.join(', ')})`
}

/** An offer in one line, with its terms and remaining time: `Offer: euros 40, day friday (stands for 10m)`. */
function offerText({ terms, expiresAt }: Offer, nowMs: number): string {
  const named = Object.entries(terms).map(
    ([name, value]) => `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`
  )
  const leftMs = Date.parse(expiresAt) - nowMs
  return oneLine(
    `Offer: ${named.join(', ')} (${leftMs > 0 ? `stands for ${lengthText(Math.ceil(leftMs / 1000) * 1000)}` : 'has expired'})`
  )
}

/** A message as text. Files are named only. Data is left out if there is text, since it is for programs; without a name it is one line of JSON. */
export function messageText(message: Message): string {
  const hasText = message.parts.some(part => 'text' in part)
  const shown = messageParts(message).filter(given => !hasText || !('data' in given))
  return shown
    .map(given =>
      'text' in given
        ? plain(given.text)
        : 'data' in given && given.filename === undefined
          ? oneLine(JSON.stringify(given.data))
          : shortly(given)
    )
    .join(' ')
}
