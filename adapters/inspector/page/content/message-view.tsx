import type { Message } from '../../../../machines/protocol/parts.ts'
import { PartsView } from './parts-view.tsx'

/** What one side said. */
export function MessageView({ message: { role, parts } }: { readonly message: Message }) {
  const isAgent = role === 'ROLE_AGENT'
  return (
    <article class={isAgent ? 'message message-agent' : 'message message-client'}>
      <header class="quiet">{isAgent ? 'agent' : 'client'}</header>
      <PartsView parts={parts} />
    </article>
  )
}
