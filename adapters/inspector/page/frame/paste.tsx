import { useState } from 'preact/hooks'
import type { Hello } from '../../feed.ts'
import { copyText } from './copy-id.tsx'

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
