import { effect, signal } from '@preact/signals'
import { connect, type AgentClient, type LinkState } from '../../../client/connect.ts'
import { hello } from '../feed/feed.ts'
import { errorText } from '../frame/wording.ts'
import { agentUrl } from '../page-settings.ts'

/** The agent, once the page is connected to it. */
export const agent = signal<AgentClient | undefined>(undefined)

/** How the connection to the agent stands. */
export const agentState = signal<LinkState>('connecting')

/** Why the agent does not let the page in, though the hub beside it does: it wants credentials. */
export const agentRefusal = signal<string | undefined>(undefined)

/** Connects to the agent that the hub names, again whenever the hub names one and there is no connection. */
export function openAgent(): void {
  let isOpening = false
  effect(() => {
    const url = hello.value?.url
    if (url === undefined || isOpening || agent.peek()) return
    isOpening = true
    open(() => connect(agentUrl(url), { giveUpAfterMs: Infinity })).finally(() => (isOpening = false)).catch(() => undefined)
  })
}

/** Connects with a key: over HTTP, for a browser's WebSocket takes no headers. The page keeps the key in its memory alone. */
export async function openWithKey(key: string): Promise<void> {
  const url = agentUrl(hello.peek()?.url ?? '').replace(/^ws/, 'http')
  await open(async () => {
    const client = await connect(url, { giveUpAfterMs: Infinity, bindings: ['JSONRPC'], headers: { authorization: `Bearer ${key}` } })
    // The first call tells whether the key is good.
    await client.listTasks({ pageSize: 1 })
    return client
  })
}

async function open(connecting: () => Promise<AgentClient>): Promise<void> {
  try {
    const client = await connecting()
    for (const state of ['connecting', 'open', 'lost', 'closed'] as const) {
      client.on(state, () => {
        agentState.value = state
        if (state === 'closed') agent.value = undefined
      })
    }
    agentState.value = client.state
    agentRefusal.value = undefined
    agent.value = client
  } catch (error) {
    agentRefusal.value = errorText(error)
  }
}
