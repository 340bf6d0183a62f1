import { useEffect, useMemo, useState } from 'preact/hooks'
import type { Artifact, Message, Part } from '../../../../machines/protocol/objects.ts'
import { isWeb, PICTURES } from '../../story/story-parts.ts'
import { CopyId } from '../parts.tsx'
import { jsonText, sizeText } from '../wording.ts'
import { DataView, TableView } from './data-view.tsx'
import { Markdown } from './markdown.tsx'
import { csvRows, textKind, type TextKind } from './safe-text.ts'
import { contentsOf, type Content } from './whole-parts.ts'

/** The maximum number of rows of a shown table. */
const MOST_ROWS = 200

/** The maximum length of shown text; the whole can be saved. */
const LONGEST_TEXT = 100_000

/** Parts by their type: text, pictures, JSON, links, files to save. Never as HTML. */
export function PartsView({ parts }: { readonly parts: readonly Part[] }) {
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
