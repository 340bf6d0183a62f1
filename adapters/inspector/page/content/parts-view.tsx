import { useEffect, useMemo, useState } from 'preact/hooks'
import type { Artifact } from '../../../../machines/protocol/objects.ts'
import type { Message, Part } from '../../../../machines/protocol/parts.ts'
import { jsonText, shortId, sizeText } from '../frame/wording.ts'
import { contentsOf, type Content } from './whole-parts.ts'

/** Image types that browsers show. An `img` element never runs scripts. */
const PICTURES: readonly string[] = ['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif', 'image/svg+xml', 'image/bmp']

/** The maximum length of shown text; the whole can be saved. */
const LONGEST_TEXT = 100_000

/** Parts by their type: text, pictures, JSON, links, files to save. Never as HTML. */
export function PartsView({ parts }: { readonly parts: readonly Part[] }) {
  return <div class="parts">{contentsOf(parts).map((content, i) => <ContentView key={i} content={content} />)}</div>
}

function ContentView({ content }: { readonly content: Content }) {
  if (content.kind === 'text') return <TextView {...content} />
  if (content.kind === 'data') return <pre class="part-data">{cut(jsonText(content.data))}</pre>
  return content.kind === 'url' ? <UrlView {...content} /> : <BytesView {...content} />
}

function TextView({ text, name, mediaType }: Extract<Content, { kind: 'text' }>) {
  const isPlain = mediaType === '' || mediaType === 'text/plain' || mediaType === 'text/markdown'
  return (
    <>
      {isPlain && name === '' ? <p class="part-text">{cut(text)}</p> : <pre class="part-data">{cut(text)}</pre>}
      {(name !== '' || text.length > LONGEST_TEXT) && <SaveLink bytes={new TextEncoder().encode(text)} name={name || 'text.txt'} mediaType={mediaType || 'text/plain'} />}
    </>
  )
}

/** Only http: and https: URLs become links. */
function UrlView({ url, name }: Extract<Content, { kind: 'url' }>) {
  const isWeb = URL.canParse(url) && ['http:', 'https:'].includes(new URL(url).protocol)
  return <p>{isWeb ? <a href={url} target="_blank" rel="noopener noreferrer">{name || url}</a> : <code>{url}</code>}</p>
}

function BytesView({ bytes, name, mediaType }: Extract<Content, { kind: 'bytes' }>) {
  const isText = mediaType.startsWith('text/') || mediaType === 'application/json'
  const text = useMemo(() => (isText ? new TextDecoder().decode(bytes) : ''), [bytes, isText])
  const url = useBlobUrl(bytes, mediaType)
  return (
    <figure>
      {PICTURES.includes(mediaType) && url !== undefined && <img src={url} alt={name || mediaType} />}
      {isText && <pre class="part-data">{cut(mediaType === 'application/json' ? prettyJson(text) : text)}</pre>}
      <figcaption><SaveLink bytes={bytes} name={name || 'file'} mediaType={mediaType} /></figcaption>
    </figure>
  )
}

function SaveLink({ bytes, name, mediaType }: { readonly bytes: Uint8Array<ArrayBuffer>; readonly name: string; readonly mediaType: string }) {
  // Not with its own type: opened in a tab, it would be a page of this origin.
  const url = useBlobUrl(bytes, 'application/octet-stream')
  return (
    <span>
      {url === undefined ? name : <a href={url} download={name}>{name}</a>} <span class="quiet">{`${mediaType || 'unknown type'}, ${sizeText(bytes.length)}`}</span>
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

/** One message. */
export function MessageView({ message: { role, parts } }: { readonly message: Message }) {
  const isAgent = role === 'ROLE_AGENT'
  return (
    <article class={isAgent ? 'message message-agent' : 'message message-client'}>
      <header class="quiet">{isAgent ? 'agent' : 'client'}</header>
      <PartsView parts={parts} />
    </article>
  )
}

/** The artifacts of a task. */
export function ArtifactsView({ artifacts }: { readonly artifacts: readonly Artifact[] }) {
  return <>{artifacts.map(artifact => <ArtifactView key={artifact.artifactId} artifact={artifact} />)}</>
}

function ArtifactView({ artifact: { artifactId, name, description, parts } }: { readonly artifact: Artifact }) {
  const shown = useMemo(() => <PartsView parts={parts} />, [parts])
  return (
    <article class="artifact">
      <header>
        <b>{name || 'artifact'}</b>
        <span class="quiet mono" title={`Artifact ${artifactId}`}>{shortId(artifactId)}</span>
      </header>
      {description && <p class="quiet">{description}</p>}
      {shown}
    </article>
  )
}
