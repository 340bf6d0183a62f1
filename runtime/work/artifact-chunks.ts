import type { Part } from '../../machines/protocol/objects.ts'
import type { WorkWord } from '../../machines/task-events.ts'
import type { TaskEvent } from '../store/store.ts'

type Produced = Extract<WorkWord, { type: 'work.produced' }>

/** The first half of a surrogate pair at the end of a text. */
const HALF = /[\ud800-\udbff]$/

/**
 * The chunks of a work's artifacts, as clients get them. The first chunk of an artifact does not append. A character
 * that is split between two chunks is sent with the second: its first half waits. A half alone becomes U+FFFD; one that
 * still waits when the work ends is dropped.
 */
export class ArtifactChunks {
  /** The half that waits for the next chunk of an artifact, by its id; empty for none. */
  readonly #halves = new Map<string, string>()
  readonly #isRestored: boolean

  /**
   * `isRestored`: the artifacts of a restored chart so far are unknown, so that chunks of unknown artifacts may append.
   */
  constructor(isRestored = false) {
    this.#isRestored = isRestored
  }

  /** Notes the artifacts of earlier runs. */
  note(events: readonly TaskEvent[]): void {
    for (const { update } of events)
      if ('artifactUpdate' in update) this.#halves.set(update.artifactUpdate.artifact.artifactId, '')
  }

  /** The word as it is sent. */
  next(word: Produced): Produced {
    const { artifact, append = false, lastChunk = false } = word
    const { artifactId } = artifact
    const before = artifactId === undefined ? undefined : this.#halves.get(artifactId)
    const appends = append && (before !== undefined || (this.#isRestored && artifactId !== undefined))
    const { parts, half } = whole(
      appends && before ? joined(before, artifact.parts) : artifact.parts,
      artifactId !== undefined && !lastChunk
    )
    if (artifactId !== undefined) this.#halves.set(artifactId, half)
    if (appends === append && parts === artifact.parts) return word
    const { append: _, ...others } = word
    return { ...others, artifact: { ...artifact, parts }, ...(appends && { append }) }
  }
}

/** A chunk after the half of a character before it. */
function joined(half: string, parts: Part[]): Part[] {
  const [first, ...others] = parts
  return first && 'text' in first ? [{ ...first, text: half + first.text }, ...others] : [{ text: half }, ...parts]
}

/** Parts without halves of characters; `half` is the last one, if it may wait for the next chunk. */
function whole(parts: Part[], mayWait: boolean): { readonly parts: Part[]; readonly half: string } {
  if (parts.every(part => !('text' in part) || part.text.isWellFormed())) return { parts, half: '' }
  const last = parts.at(-1)
  const [half] = (mayWait && last && 'text' in last && HALF.exec(last.text)) || ['']
  const made = parts.map(part =>
    'text' in part
      ? {
          ...part,
          text: (part === last ? part.text.slice(0, part.text.length - half.length) : part.text).toWellFormed()
        }
      : part
  )
  return { parts: made, half }
}
