import type { Artifact, Message, Part, Task } from '../../machines/protocol/objects.ts'
import { isTerminal, stateText } from '../../machines/protocol/states.ts'

/** One block of the content of a result. */
export type Block = { readonly type: 'text' | 'image' | 'audio' | 'resource' | 'resource_link' } & Readonly<
  Record<string, unknown>
>

/** The result of a call of a tool. */
export interface ToolResult {
  readonly resultType: 'complete'
  readonly content: Block[]
  readonly isError?: boolean
  readonly _meta?: Readonly<Record<string, unknown>>
  readonly [member: string]: unknown
}

/** The metadata key of a result that holds the metadata of its task. */
const METADATA = 'dev.taskchart/metadata'

/** Bytes of a part that stands in a result. A larger one is a link. */
const LARGEST_PART = 1024 * 1024
/** Bytes of metadata that stand in a result. */
const LARGEST_METADATA = 16 * 1024
/** The type of files whose part names none. */
const UNKNOWN_TYPE = 'application/octet-stream'

/** A result of one text. */
export function textResult(text: string, isError = false): ToolResult {
  return { resultType: 'complete', content: [{ type: 'text', text }], ...(isError && { isError }) }
}

/** The result of a message without a task. */
export function messageResult({ parts, contextId }: Message, more: readonly string[] = []): ToolResult {
  // Every message of an agent has a contextId.
  const ids = [...more, `contextId: ${String(contextId)}`]
  return {
    resultType: 'complete',
    content: [...blocksOf(parts), { type: 'text', text: ids.join('\n') }]
  }
}

/**
 * The result of a task: the words of its status, its artifacts, and its ids, which a model needs to go on. `more` says
 * how to. A task that failed, was rejected or was canceled is an error.
 */
export function taskResult(task: Task, more: readonly string[] = []): ToolResult {
  const { id, contextId, status, artifacts = [] } = task
  const names = artifacts.map(({ name, artifactId }) => name ?? artifactId)
  const lines = [
    ...more,
    `taskId: ${id}`,
    `contextId: ${String(contextId)}`,
    `state: ${stateText(status.state)}`,
    ...(names.length > 0 ? [`artifacts: ${names.join(', ')}`] : [])
  ]
  const isError = isTerminal(status.state) && status.state !== 'TASK_STATE_COMPLETED'
  return {
    resultType: 'complete',
    content: [
      ...blocksOf(status.message?.parts ?? []),
      ...artifacts.flatMap(artifact => blocksOf(artifact.parts, linkTo(task, artifact))),
      { type: 'text', text: lines.join('\n') }
    ],
    ...(isError && { isError }),
    ...metadataOf(task)
  }
}

/** The metadata of a task as `_meta`, if it is small. */
export function metadataOf({ metadata }: Task): { readonly _meta?: Readonly<Record<string, unknown>> } {
  if (!metadata || Buffer.byteLength(JSON.stringify(metadata)) > LARGEST_METADATA) return {}
  return { _meta: { [METADATA]: metadata } }
}

/** The words of parts: texts and URLs; if there are none, data as JSON. */
export function wordsIn(parts: readonly Part[]): string {
  const words = parts.flatMap(part => ('text' in part ? [part.text] : 'url' in part ? [part.url] : []))
  if (words.length > 0) return words.join('\n')
  return parts.flatMap(part => ('data' in part ? [JSON.stringify(part.data)] : [])).join('\n')
}

interface Link {
  readonly uri: string
  readonly name: string
  readonly description?: string
}

function linkTo({ id }: Task, { artifactId, name = artifactId, description }: Artifact): Link {
  return { uri: artifactUri(id, artifactId), name, ...(description !== undefined && { description }) }
}

function blocksOf(parts: readonly Part[], link?: Link): Block[] {
  return joinTexts(parts).map(part => {
    const isLarge = link !== undefined && sizeOf(part) > LARGEST_PART
    return isLarge ? { type: 'resource_link', ...link, mimeType: typeOf(part) } : blockOf(part, link)
  })
}

function blockOf(part: Part, link: Link | undefined): Block {
  if ('text' in part) return { type: 'text', text: part.text }
  if ('data' in part) return { type: 'text', text: JSON.stringify(part.data) }
  const mimeType = typeOf(part)
  if ('url' in part) {
    const name = part.filename ?? link?.name ?? part.url
    return { type: 'resource_link', uri: part.url, name, ...(part.mediaType !== undefined && { mimeType }) }
  }
  const kind = /^(image|audio)\//.exec(mimeType)?.[1]
  if (kind === 'image' || kind === 'audio') return { type: kind, data: part.raw, mimeType }
  return { type: 'resource', resource: { uri: link?.uri ?? 'taskchart://message', ...contentOf(part) } }
}

/** Chunks of text are one text. */
function joinTexts(parts: readonly Part[]): Part[] {
  const joined: Part[] = []
  for (const part of parts) {
    const last = joined.at(-1)
    if (last && 'text' in last && 'text' in part) joined[joined.length - 1] = { ...last, text: last.text + part.text }
    else joined.push(part)
  }
  return joined
}

/** Bytes of the text, of the base64, or of the JSON. */
function sizeOf(part: Part): number {
  if ('url' in part) return 0
  return Buffer.byteLength('text' in part ? part.text : 'raw' in part ? part.raw : JSON.stringify(part.data))
}

function typeOf(part: Part): string {
  if (part.mediaType !== undefined) return part.mediaType
  return 'text' in part ? 'text/plain' : 'data' in part ? 'application/json' : UNKNOWN_TYPE
}

/** The template of an artifact's URI. */
export const ARTIFACT_TEMPLATE = 'taskchart://tasks/{taskId}/artifacts/{artifactId}'

/** The URI of an artifact. */
function artifactUri(taskId: string, artifactId: string): string {
  return `taskchart://tasks/${encodeURIComponent(taskId)}/artifacts/${encodeURIComponent(artifactId)}`
}

/** The task and the artifact of a URI; `undefined` for any other URI. */
export function artifactIn(uri: string): { readonly taskId: string; readonly artifactId: string } | undefined {
  const { task, artifact } =
    /^taskchart:\/\/tasks\/(?<task>[^/]+)\/artifacts\/(?<artifact>[^/]+)$/.exec(uri)?.groups ?? {}
  try {
    return task === undefined || artifact === undefined
      ? undefined
      : { taskId: decodeURIComponent(task), artifactId: decodeURIComponent(artifact) }
  } catch {
    return undefined
  }
}

/** The contents of an artifact, as `resources/read` gives them. */
export function resourceContents(uri: string, { parts }: Artifact): { uri: string; text?: string; blob?: string }[] {
  return joinTexts(parts).map(part => ({ uri, ...contentOf(part) }))
}

/** A part as the contents of a resource: text, or base64. */
function contentOf(part: Part): { mimeType: string; text: string } | { mimeType: string; blob: string } {
  const mimeType = typeOf(part)
  if ('text' in part) return { mimeType, text: part.text }
  if ('data' in part) return { mimeType, text: JSON.stringify(part.data) }
  if ('url' in part) return { mimeType: 'text/uri-list', text: part.url }
  return mimeType.startsWith('text/')
    ? { mimeType, text: Buffer.from(part.raw, 'base64').toString('utf8') }
    : { mimeType, blob: part.raw }
}
