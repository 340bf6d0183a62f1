import type { Message } from '../machines/protocol/parts.ts'

/** Names one artifact of all: its id is unique only within its task (§4.1.7). */
export interface ArtifactReference {
  readonly taskId: string
  readonly artifactId: string
}

/**
 * The artifacts that a message names in the metadata of its parts, in either of the two forms in use:
 * `{ "referenceArtifacts": [{ "artifactId", "taskId" }] }`, or `artifactId` and `taskId` directly.
 */
export function namedArtifacts(message: Message): ArtifactReference[] {
  return message.parts.flatMap(({ metadata }) => {
    if (!metadata) return []
    const { referenceArtifacts } = metadata
    const candidates: unknown[] = Array.isArray(referenceArtifacts) ? referenceArtifacts : [metadata]
    return candidates.filter(isReference).map(({ taskId, artifactId }) => ({ taskId, artifactId }))
  })
}

/** Whether a value names an artifact; it may have other members, too. */
export function isReference(value: unknown): value is ArtifactReference {
  return (
    typeof value === 'object' && value !== null &&
    'taskId' in value && typeof value.taskId === 'string' &&
    'artifactId' in value && typeof value.artifactId === 'string'
  )
}
