import { useEffect, useMemo, useState } from 'preact/hooks'
import type { Artifact, Message, Part } from '../../../../machines/protocol/objects.ts'
import { isWeb, PICTURES } from '../../story/story-parts.ts'
import { CopyId } from '../parts.tsx'
import { jsonText, sizeText } from '../wording.ts'
import { DataView, TableView } from './data-view.tsx'
import { Markdown } from './markdown.tsx'

/** The maximum number of rows of a shown table. */
const MOST_ROWS = 200

/** The maximum length of shown text; the whole can be saved. */
const LONGEST_TEXT = 100_000

/** Parts by their type: text, pictures, JSON, links, files to save. Never as HTML. */
function PartsView({ parts }: { readonly parts: readonly Part[] }) {
  return (
    <div class="parts">
      {contentsOf(parts).map((content, i) => (
        <ContentView key={i} content={content} />
      ))}
    </div>
  )
}

function ContentView({ content }: { readonly content: Content }) {
  if (content.kind === 'text') return <TextView {...content} />
  if (content.kind === 'data') return <DataView data={content.data} />
  return content.kind === 'url' ? <UrlView {...content} /> : <BytesView {...content} />
}

function TextView({ text, name, mediaType }: Extract<Content, { kind: 'text' }>) {
  const bytes = useMemo(() => new TextEncoder().encode(text), [text])
  return (
    <>
      <KnownText text={text} bytes={bytes} kind={textKind(mediaType, name)} name={name} />
      {(name !== '' || text.length > LONGEST_TEXT) && (
        <SaveLink bytes={bytes} name={name || 'text.txt'} mediaType={mediaType || 'text/plain'} />
      )}
    </>
  )
}

/** A text by its kind: Markdown, table, picture, code. */
function KnownText({
  text,
  bytes,
  kind,
  name
}: {
  readonly text: string
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly kind: TextKind
  readonly name: string
}) {
  if (kind === 'markdown') return <Markdown text={text} />
  if (kind === 'plain') return <p class="part-text">{cut(text)}</p>
  if (kind === 'svg') return <Picture bytes={bytes} name={name} mediaType="image/svg+xml" />
  const [head, ...rows] = (kind === 'csv' && csvRows(text, text.includes('\t') ? '\t' : ',', MOST_ROWS)) || []
  if (head) return <TableView head={head} rows={rows} count={rows.length} />
  return (
    <pre class="part-data" tabIndex={0}>
      <code>{cut(kind === 'json' ? prettyJson(text) : text)}</code>
    </pre>
  )
}

/** Only http: and https: URLs become links. */
function UrlView({ url, name }: Extract<Content, { kind: 'url' }>) {
  return (
    <p>
      {isWeb(url) ? (
        <a href={url} target="_blank" rel="noopener noreferrer">
          {name || url}
        </a>
      ) : (
        <code>{url}</code>
      )}
    </p>
  )
}

function BytesView({ bytes, name, mediaType }: Extract<Content, { kind: 'bytes' }>) {
  const isText = mediaType.startsWith('text/') || mediaType === 'application/json'
  const text = useMemo(() => (isText ? new TextDecoder().decode(bytes) : ''), [bytes, isText])
  return (
    <figure>
      {PICTURES.has(mediaType) && <Picture bytes={bytes} name={name} mediaType={mediaType} />}
      {isText && <KnownText text={text} bytes={bytes} kind={textKind(mediaType, name)} name={name} />}
      <figcaption>
        <SaveLink bytes={bytes} name={name || 'file'} mediaType={mediaType} />
      </figcaption>
    </figure>
  )
}

/** A picture in an `img`, which runs no scripts and loads nothing. */
function Picture({
  bytes,
  name,
  mediaType
}: {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly name: string
  readonly mediaType: string
}) {
  const url = useBlobUrl(bytes, mediaType)
  return url === undefined ? null : <img src={url} alt={name || 'picture'} />
}

function SaveLink({
  bytes,
  name,
  mediaType
}: {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly name: string
  readonly mediaType: string
}) {
  // Not with its own type: opened in a tab, it would be a page of this origin.
  const url = useBlobUrl(bytes, 'application/octet-stream')
  return (
    <span>
      {url === undefined ? (
        name
      ) : (
        <a href={url} download={name}>
          {name}
        </a>
      )}{' '}
      <span class="quiet">{`${mediaType || 'unknown type'}, ${sizeText(bytes.length)}`}</span>
    </span>
  )
}

/** A blob URL for bytes, while they are shown. */
function useBlobUrl(bytes: Uint8Array<ArrayBuffer>, type: string): string | undefined {
  const [url, setUrl] = useState<string>()
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([bytes], { type }))
    setUrl(made)
    return () => URL.revokeObjectURL(made)
  }, [bytes, type])
  return url
}

function cut(text: string): string {
  return text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}…` : text
}

function prettyJson(text: string): string {
  try {
    return jsonText(JSON.parse(text))
  } catch {
    return text
  }
}

/** One message. A client's text is shown as it was typed. */
export function MessageView({ message: { role, parts } }: { readonly message: Message }) {
  const isAgent = role === 'ROLE_AGENT'
  const shown = isAgent
    ? parts
    : parts.map(part => ('text' in part && part.mediaType === undefined ? { ...part, mediaType: 'text/plain' } : part))
  return (
    <article
      class={isAgent ? 'message message-agent' : 'message message-client'}
      aria-label={isAgent ? 'The agent says' : 'The client says'}
    >
      <header class="quiet" aria-hidden="true">
        {isAgent ? 'agent' : 'client'}
      </header>
      <PartsView parts={shown} />
    </article>
  )
}

/** The artifacts of a task. */
export function ArtifactsView({ artifacts }: { readonly artifacts: readonly Artifact[] }) {
  return (
    <>
      {artifacts.map(artifact => (
        <ArtifactView key={artifact.artifactId} artifact={artifact} />
      ))}
    </>
  )
}

/** One artifact. */
export function ArtifactView({ artifact: { artifactId, name, description, parts } }: { readonly artifact: Artifact }) {
  const shown = useMemo(() => <PartsView parts={parts} />, [parts])
  return (
    <article class="artifact">
      <header>
        <b>{name || 'artifact'}</b>
        <CopyId what="artifact" id={artifactId} />
      </header>
      {description && <p class="quiet">{description}</p>}
      {shown}
    </article>
  )
}

/** A complete content of a message or an artifact. */
type Content =
  | { readonly kind: 'text'; readonly text: string; readonly name: string; readonly mediaType: string }
  | { readonly kind: 'data'; readonly data: unknown }
  | { readonly kind: 'url'; readonly url: string; readonly name: string; readonly mediaType: string }
  | {
      readonly kind: 'bytes'
      readonly bytes: Uint8Array<ArrayBuffer>
      readonly name: string
      readonly mediaType: string
    }

/** The contents of parts: consecutive texts are joined, and so are chunks of one file. */
function contentsOf(parts: readonly Part[]): Content[] {
  const groups: Part[][] = []
  for (const part of parts) {
    const last = groups.at(-1)
    if (last?.[0] && goesOn(last[0], part)) last.push(part)
    else groups.push([part])
  }
  return groups.map(contentOf)
}

function goesOn(first: Part, next: Part): boolean {
  if (first.filename !== next.filename || first.mediaType !== next.mediaType) return false
  return ('text' in first && 'text' in next) || ('raw' in first && 'raw' in next && first.filename !== undefined)
}

function contentOf(parts: Part[]): Content {
  const [first] = parts as [Part]
  const named = { name: first.filename ?? '', mediaType: first.mediaType ?? '' }
  if ('text' in first)
    return { kind: 'text', ...named, text: parts.map(part => ('text' in part ? part.text : '')).join('') }
  if ('data' in first) return { kind: 'data', data: first.data }
  if ('url' in first) return { kind: 'url', ...named, url: first.url }
  const pieces = parts.map(part => ('raw' in part ? bytesOf(part.raw) : new Uint8Array()))
  const bytes = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    bytes.set(piece, at)
    at += piece.length
  }
  return { kind: 'bytes', ...named, bytes }
}

function bytesOf(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64.replaceAll('-', '+').replaceAll('_', '/')), char => char.charCodeAt(0))
}

/** The kinds of texts and files, each of which is shown in its own way. */
type TextKind = 'markdown' | 'csv' | 'json' | 'svg' | 'plain' | 'code'

const BY_TYPE: ReadonlyMap<string, TextKind> = new Map([
  ['text/markdown', 'markdown'],
  ['text/csv', 'csv'],
  ['text/tab-separated-values', 'csv'],
  ['application/json', 'json'],
  ['image/svg+xml', 'svg'],
  ['text/plain', 'plain']
])

const BY_ENDING: ReadonlyMap<string, TextKind> = new Map([
  ['md', 'markdown'],
  ['markdown', 'markdown'],
  ['csv', 'csv'],
  ['tsv', 'csv'],
  ['json', 'json'],
  ['svg', 'svg'],
  ['txt', 'plain']
])

/** The kind of a text, by its media type, else by the ending of its name. Text with neither is Markdown. */
function textKind(mediaType: string, name: string): TextKind {
  const type = mediaType.split(';')[0]?.trim().toLowerCase() ?? ''
  const byType = BY_TYPE.get(type)
  const ending = /\.(\w+)$/.exec(name)?.[1]?.toLowerCase() ?? ''
  if (byType && (byType !== 'plain' || ending === '')) return byType
  if (type !== '' && byType === undefined) return 'code'
  return BY_ENDING.get(ending) ?? (ending === '' ? 'markdown' : 'code')
}

/** The rows and cells of a CSV text, at most `most` rows; `undefined` if they are no table. */
function csvRows(text: string, separator: string, most: number): string[][] | undefined {
  const rows: string[][] = [[]]
  const cell = new RegExp(
    String.raw`(?:"((?:[^"]|"")*)"|([^"${separator}\r\n][^${separator}\r\n]*|))(${separator}|\r?\n|$)`,
    'gy'
  )
  for (let match = cell.exec(text); match && rows.length <= most; match = cell.exec(text)) {
    const [, quoted, bare = '', end] = match
    rows.at(-1)?.push(quoted?.replaceAll('""', '"') ?? bare)
    if (cell.lastIndex >= text.length) break
    if (end !== separator) rows.push([])
  }
  const full = rows.filter(row => row.length > 1 || row[0] !== '')
  return full.length > 1 && full.every(row => row.length > 1) ? full.slice(0, most) : undefined
}
