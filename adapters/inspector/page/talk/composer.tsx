import { signal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { Part } from '../../../../machines/protocol/parts.ts'
import { sizeText } from '../frame/wording.ts'
import { isSending, sendError, sendParts, type Destination } from './sending.ts'
import { dataPart, filePart } from './given-parts.ts'

const text = signal('')
const json = signal('')
const wantsJson = signal(false)
const files = signal<readonly File[]>([])
const wrong = signal<string | undefined>(undefined)

/** Where the next message goes. */
export type Target = 'task' | 'about' | 'context' | 'new'

/** Which of the targets there are now, with what people call them. */
export interface ComposerProps {
  readonly targets: readonly { readonly name: Target; readonly label: string; readonly destination: Destination }[]
  readonly chosen: Target
  readonly choose: (target: Target) => void
}

/** Where a message is written: text, files and JSON data together. */
export function Composer({ targets, chosen, choose }: ComposerProps) {
  const picker = useRef<HTMLInputElement>(null)
  const target = targets.find(({ name }) => name === chosen) ?? targets[0]
  const send = async (event: Event) => {
    event.preventDefault()
    const parts = await written()
    if (!parts || !target) return
    if (await sendParts(parts, target.destination)) clear()
  }
  const press = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) void send(event)
  }
  return (
    <form class="composer" aria-label="A message to the agent" onSubmit={event => void send(event)}>
      <textarea id="composer" aria-label="Message" rows={2} placeholder="Message to the agent (Enter sends, Shift+Enter breaks the line)" value={text.value} onInput={event => (text.value = event.currentTarget.value)} onKeyDown={press} />
      {wantsJson.value && <textarea aria-label="Data as JSON" class="mono" rows={4} spellcheck={false} placeholder={'{ "colour": "red" }'} value={json.value} onInput={event => (json.value = event.currentTarget.value)} />}
      {files.value.length > 0 && (
        <ul class="files">
          {files.value.map((file, i) => (
            <li key={i}>{file.name} <span class="quiet">{sizeText(file.size)}</span> <button type="button" class="plain" aria-label={`Remove ${file.name}`} onClick={() => (files.value = files.value.filter(other => other !== file))}>✕</button></li>
          ))}
        </ul>
      )}
      {(wrong.value ?? sendError.value) !== undefined && <p class="wrong" role="alert">{wrong.value ?? sendError.value}</p>}
      <div class="composer-tools">
        <select aria-label="Where the message goes" value={target?.name ?? 'new'} onChange={event => choose(event.currentTarget.value as Target)}>
          {targets.map(({ name, label }) => <option key={name} value={name}>{label}</option>)}
        </select>
        <input ref={picker} type="file" multiple hidden aria-label="Files" onChange={event => take(event.currentTarget)} />
        <button type="button" onClick={() => picker.current?.click()}>Files…</button>
        <button type="button" aria-pressed={wantsJson.value} onClick={() => (wantsJson.value = !wantsJson.value)}>Data</button>
        <span class="tools-gap" />
        <button type="submit" class="main" disabled={isSending.value}>Send</button>
      </div>
    </form>
  )
}

function take(input: HTMLInputElement): void {
  files.value = [...files.value, ...(input.files ?? [])]
  input.value = ''
}

/** The parts of what is written; `undefined` if there is nothing to send, which is said. */
async function written(): Promise<Part[] | undefined> {
  wrong.value = undefined
  const data = wantsJson.peek() && json.peek().trim() !== '' ? dataPart(json.peek()) : undefined
  if (typeof data === 'string') {
    wrong.value = data
    return undefined
  }
  const parts = [...(text.peek().trim() === '' ? [] : [{ text: text.peek() }]), ...(await Promise.all(files.peek().map(filePart))), ...(data ? [data] : [])]
  if (parts.length === 0) wrong.value = 'There is nothing to send yet.'
  return parts.length === 0 ? undefined : parts
}

function clear(): void {
  text.value = ''
  json.value = ''
  files.value = []
}
