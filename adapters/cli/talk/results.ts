import { offerIn } from '../../../machines/protocol/negotiation.ts'
import type { Io } from '../command.ts'
import { offerText } from '../text/offer-text.ts'
import { oneLine, plain, sizeText } from '../text/terminal-text.ts'
import type { Given } from './artifact-parts.ts'
import { saveGiven } from './save-artifacts.ts'

/** How results are shown. */
export interface ResultOptions {
  /** Folder for files; without it they are only named. */
  readonly out: string | undefined
  /** Whether text is saved too, not only printed: that of artifacts is, that of messages is not. */
  readonly savesText: boolean
  /** Whether stdout is for JSON alone. Then files are saved, and nothing is printed. */
  readonly json: boolean
}

/** Prints what an agent gave, and saves the files among it. Urls are printed, never fetched. */
export async function showResults(results: readonly Given[], { out, savesText, json }: ResultOptions, io: Io): Promise<void> {
  for (const given of results) {
    const isSaved = out !== undefined && !('url' in given) && (savesText || !('text' in given))
    const path = isSaved ? await saveGiven(given, out, io.cwd) : undefined
    if (!json && !('bytes' in given)) io.stdout.write(`${printed(given, io.clock.now())}\n`)
    if (path !== undefined) (json ? io.stderr : io.stdout).write(`saved ${oneLine(path)}${about(given)}\n`)
    else if (!json && 'bytes' in given) io.stdout.write(`${oneLine(given.name)}${about(given)}, not saved: add --out DIR to save files\n`)
  }
}

/** What an agent gave that is no text, in a few words: `picture.png (image/png, 45.1 kB)`. */
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
  const facts = [...(given.mediaType === undefined ? [] : [oneLine(given.mediaType)]), ...('bytes' in given ? [sizeText(given.bytes.length)] : [])]
  return facts.length === 0 ? '' : ` (${facts.join(', ')})`
}
