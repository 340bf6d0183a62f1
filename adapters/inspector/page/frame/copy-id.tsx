import { useState } from 'preact/hooks'
import { shortId } from './wording.ts'

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
