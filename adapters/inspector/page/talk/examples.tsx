import { hello } from '../feed/feed.ts'
import { sendParts } from './sending.ts'

/** The messages that the agent's card gives as examples, as buttons that send them. */
export function Examples({ contextId }: { readonly contextId?: string | undefined }) {
  const { examples = [] } = hello.value?.agent ?? {}
  if (examples.length === 0) return null
  return (
    <div class="choices">
      {examples.map(text => (
        <button key={text} type="button" onClick={() => void sendParts([{ text }], { contextId })}>
          {text}
        </button>
      ))}
    </div>
  )
}
