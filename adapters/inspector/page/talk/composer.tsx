import { signal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { JsonValue } from '../../../../machines/protocol/codec/json.ts'
import type { Part } from '../../../../machines/protocol/objects.ts'
import { sizeText } from '../wording.ts'
import { isSending, sendError, sendParts, type Destination } from './sending.ts'

const text = signal('')
const json = signal('')
const wantsJson = signal(false)
const files = signal<readonly File[]>([])
const wrong = signal<string | undefined>(undefined)

/** A destination of the next message. */
export interface Target {
  readonly name: 'task' | 'about' | 'context' | 'new'
  readonly label: string
  /** The placeholder: it says what a message does. */
  readonly hint: string
  readonly destination: Destination
}

/** The available destinations. */
export interface ComposerProps {
  readonly targets: readonly Target[]
  readonly chosen: Target['name']
  readonly choose: (target: Target['name']) => void
}

/** Composes a message: text, files and JSON data together. */
export function Composer({ targets, chosen, choose }: ComposerProps) {
  const picker = useRef<HTMLInputElement>(null)
  const target = targets.find(({ name }) => name === chosen) ?? targets[0]
  const send = async (event: Event) => {
    event.preventDefault()
    if (isSending.peek() || !target) return
    // It is taken out at once: the next message can be written meanwhile.
    const draft = takeDraft()
    isSending.value = true
    const parts = await partsOf(draft)
    if (parts && (await sendParts(parts, target.destination))) return
    isSending.value = false
    putBack(draft)
  }
  const press = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) void send(event)
  }
  return (
    <form class="composer" aria-label="A message to the agent" onSubmit={event => void send(event)}>
      <textarea
        id="composer"
        aria-label="Message"
        rows={2}
        placeholder={`${target?.hint ?? ''} (Enter sends it)`}
        title="Enter sends, Shift+Enter breaks the line"
        value={text.value}
        onInput={event => (text.value = event.currentTarget.value)}
        onKeyDown={press}
      />
      {wantsJson.value && (
        <textarea
          aria-label="Data as JSON"
          class="mono"
          rows={4}
          spellcheck={false}
          placeholder={'{ "colour": "red" }'}
          value={json.value}
          onInput={event => (json.value = event.currentTarget.value)}
        />
      )}
      {files.value.length > 0 && (
        <ul class="files">
          {files.value.map((file, i) => (
            <li key={i}>
              {file.name} <span class="quiet">{sizeText(file.size)}</span>{' '}
              <button
                type="button"
                class="plain"
                aria-label={`Remove ${file.name}`}
                onClick={() => (files.value = files.value.filter(other => other !== file))}
              >
                ✕
              </button>
            </li>
          ))}
        </ul>
      )}
      {(wrong.value ?? sendError.value) !== undefined && (
        <p class="wrong" role="alert">
          {wrong.value ?? sendError.value}
        </p>
      )}
      <div class="composer-tools">
        <select
          aria-label="Where the message goes"
          value={target?.name ?? 'new'}
          onChange={event => choose(event.currentTarget.value as Target['name'])}
        >
          {targets.map(({ name, label }) => (
            <option key={name} value={name}>
              {label}
            </option>
          ))}
        </select>
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          aria-label="Files"
          onChange={event => take(event.currentTarget)}
        />
        <button type="button" onClick={() => picker.current?.click()}>
          Files…
        </button>
        <button type="button" aria-pressed={wantsJson.value} onClick={() => (wantsJson.value = !wantsJson.value)}>
          Data
        </button>
        <span class="tools-gap" />
        <button type="submit" class="main" disabled={isSending.value}>
          {target?.label === 'Answer' ? 'Answer' : 'Send'}
        </button>
      </div>
    </form>
  )
}

function take(input: HTMLInputElement): void {
  files.value = [...files.value, ...(input.files ?? [])]
  input.value = ''
}

/** A written message. */
interface Draft {
  readonly text: string
  readonly json: string
  readonly files: readonly File[]
}

function takeDraft(): Draft {
  const draft = { text: text.peek(), json: json.peek(), files: files.peek() }
  text.value = ''
  json.value = ''
  files.value = []
  return draft
}

/** Puts a message that was not sent before what was written since. */
function putBack(draft: Draft): void {
  const joined = (before: string, since: string) => [before, since].filter(part => part.trim() !== '').join('\n')
  text.value = joined(draft.text, text.peek())
  json.value = joined(draft.json, json.peek())
  files.value = [...draft.files, ...files.peek()]
}

/** The parts of a message; `undefined`, with an error shown, if there are none. */
async function partsOf(draft: Draft): Promise<Part[] | undefined> {
  wrong.value = undefined
  const data = wantsJson.peek() && draft.json.trim() !== '' ? dataPart(draft.json) : undefined
  if (typeof data === 'string') {
    wrong.value = data
    return undefined
  }
  const parts = [
    ...(draft.text.trim() === '' ? [] : [{ text: draft.text }]),
    ...(await Promise.all(draft.files.map(filePart))),
    ...(data ? [data] : [])
  ]
  if (parts.length === 0) wrong.value = 'There is nothing to send yet.'
  return parts.length === 0 ? undefined : parts
}

/** The number of bytes encoded at once: the limit of arguments for `String.fromCharCode`. */
const AT_ONCE = 0x8000

/** A file as a part. */
async function filePart(file: File): Promise<Part> {
  const bytes = new Uint8Array(await file.arrayBuffer())
  let binary = ''
  for (let at = 0; at < bytes.length; at += AT_ONCE) binary += String.fromCharCode(...bytes.subarray(at, at + AT_ONCE))
  return { raw: btoa(binary), filename: file.name, ...(file.type !== '' && { mediaType: file.type }) }
}

/** JSON text as a data part, or the error for invalid JSON. */
function dataPart(json: string): Part | string {
  try {
    return { data: JSON.parse(json) as JsonValue }
  } catch (error) {
    return `The data has to be JSON: ${error instanceof Error ? error.message : ''}`
  }
}
