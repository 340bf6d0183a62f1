import { useState } from 'preact/hooks'
import { stateText, type TaskState } from '../../../machines/protocol/states.ts'
import type { Hello } from '../feed.ts'
import { crashes } from './feed/feed.ts'
import { shortId } from './wording.ts'

/** A task's state, coloured. */
export function StateBadge({ state }: { readonly state: TaskState }) {
  const text = stateText(state)
  return <span class={`state state-${text}`}>{text}</span>
}

/** How long a copied id says so, in milliseconds. */
const COPIED_MS = 1200

/** A short id, which copies the whole one when it is clicked. */
export function CopyId({ what, id }: { readonly what: string; readonly id: string }) {
  const [isCopied, setIsCopied] = useState(false)
  const copy = async () => {
    await copyText(id)
    setIsCopied(true)
    setTimeout(() => setIsCopied(false), COPIED_MS)
  }
  return (
    <button type="button" class="copy-id mono" title={`Copy the ${what}’s id, ${id}`} onClick={() => void copy()}>
      <span class="unseen">{`Copy the ${what}’s id `}</span>
      {isCopied ? 'copied' : shortId(id)}
    </button>
  )
}

/** Copies a text. Pages over http: from another machine have no clipboard of their own, only that of a selection. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text)
  const field = document.createElement('textarea')
  field.value = text
  document.body.append(field)
  field.select()
  document.execCommand('copy')
  field.remove()
}

/** A line for a terminal, with a button that copies it. */
export function Paste({ line }: { readonly line: string }) {
  const [isCopied, setIsCopied] = useState(false)
  return (
    <div class="paste-box">
      <pre class="paste">{line}</pre>
      <button type="button" onClick={() => void copyText(line).then(() => setIsCopied(true))}>
        {isCopied ? 'Copied' : 'Copy'}
      </button>
    </div>
  )
}

/** The line that sends an example to an agent. */
export function sendLine({ url, agent: { examples = [] } }: Pick<Hello, 'url' | 'agent'>): string {
  const [words = 'hello'] = examples
  return `npx taskchart send ${url} '${words.replaceAll("'", "'\\''")}'`
}

/** The error with which the author's code of a task ended, and its place in the source; nothing without one. */
export function TaskError({ taskId }: { readonly taskId: string | undefined }) {
  const error = crashes.value.get(taskId ?? '')
  if (error === undefined) return null
  return (
    <section class="task-error" role="alert" aria-label="The error of this task">
      <p class="wrong">The work of this task ended with an error. Clients see only that it did.</p>
      <pre class="paste" tabIndex={0}>
        {error}
      </pre>
    </section>
  )
}
