import { useState } from 'preact/hooks'
import { copyText } from './copy-id.tsx'

/** A line for a terminal, with a button that copies it. */
export function Paste({ line }: { readonly line: string }) {
  const [isCopied, setIsCopied] = useState(false)
  return (
    <div class="paste-box">
      <pre class="paste">{line}</pre>
      <button type="button" onClick={() => void copyText(line).then(() => setIsCopied(true))}>{isCopied ? 'Copied' : 'Copy'}</button>
    </div>
  )
}

/** The line that sends a message to an agent. */
export function sendLine(url: string | undefined, words = 'hello'): string {
  return `npx taskchart send ${url ?? 'ws://…'} '${words.replaceAll("'", "'\\''")}'`
}
